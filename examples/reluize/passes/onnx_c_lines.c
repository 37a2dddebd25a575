/* SPDX-License-Identifier: MIT-0

   onnx_c_lines.c: functions of one byte that differ by channel and consist of straight lines, such
   as several ReLUs and a line in place of a gate, in C files without floats (onnx_c.h). A table has
   256 bytes a channel; lines have some numbers of 16 bits: where the function begins, its slope,
   and for each kink its place and the change of the slope. Kinks are found by second differences
   of what the evaluator computes, in whatever way the graph writes the function. */
#include "onnx_c_inside.h"

enum {
    ONNX_C_MOST_KINKS = 8,
    ONNX_C_MOST_SHIFT = 22,
    ONNX_C_KINK_STEPS = 128 /* places of kinks within a step of the byte */
};

/* The function of one channel: value at 0, slope, and for each kink its place and the change. */
typedef struct {
    double start, slope, place[ONNX_C_MOST_KINKS], change[ONNX_C_MOST_KINKS];
    int kinks;
} onnx_c_line_form;

/* Finds the lines of 256 values, in steps of the result. Returns 0, or -1: too many. */
static int onnx_c_lines_of(const double *v, onnx_c_line_form *f)
{
    const double least = 2e-3; /* second differences below it are roundings of floats */
    int n;
    memset(f, 0, sizeof *f);
    f->start = v[0];
    f->slope = v[1] - v[0];
    for (n = 1; n < 255; n++) {
        const double here = v[n + 1] - 2 * v[n] + v[n - 1];
        const double next = n < 254 ? v[n + 2] - 2 * v[n + 1] + v[n] : 0;
        if (fabs(here) < least)
            continue;
        if (f->kinks == ONNX_C_MOST_KINKS)
            return -1;
        f->place[f->kinks] = n;
        f->change[f->kinks] = here;
        /* a kink between n and n + 1 bends the function at both */
        if (fabs(next) >= least && (here > 0) == (next > 0)) {
            f->place[f->kinks] += next / (here + next);
            f->change[f->kinks] += next;
            n++;
        }
        f->kinks++;
    }
    return 0;
}

/* Returns the largest size of a sum on the way to a result. */
static double onnx_c_lines_bound(const onnx_c_line_form *f)
{
    double bound = fabs(f->start) + 255 * fabs(f->slope);
    int k;
    for (k = 0; k < f->kinks; k++)
        bound += (255 - f->place[k]) * fabs(f->change[k]);
    return bound;
}

/* Chooses the shifts of a set of functions. Returns 0, or -1: they do not fit. */
static int onnx_c_lines_scale(const onnx_c_line_form *f, size_t n, onnx_c_lines *l)
{
    double factor = 0, bound = 1, start = 0;
    size_t i;
    int k;
    for (i = 0; i < n; i++) {
        const double b = onnx_c_lines_bound(f + i);
        bound = b > bound ? b : bound;
        start = fabs(f[i].start) > start ? fabs(f[i].start) : start;
        factor = fabs(f[i].slope) > factor ? fabs(f[i].slope) : factor;
        for (k = 0; k < f[i].kinks; k++)
            factor = fabs(f[i].change[k]) > factor ? fabs(f[i].change[k]) : factor;
    }
    l->shift = ONNX_C_MOST_SHIFT;
    while (l->shift > 0
           && (ldexp(bound + 8, l->shift) > INT32_MAX
               || ldexp(factor / ONNX_C_KINK_STEPS, l->shift) > INT16_MAX - 1))
        l->shift--;
    for (l->start_shift = 0; ldexp(start, l->shift - l->start_shift) > INT16_MAX - 1;)
        l->start_shift++;
    return l->shift < 8 ? -1 : 0;
}

/* Writes the numbers of one function. */
static void onnx_c_lines_numbers(const onnx_c_line_form *f, const onnx_c_lines *l, int16_t *to)
{
    const double factor = ldexp(1.0 / ONNX_C_KINK_STEPS, l->shift);
    int k;
    to[0] = (int16_t)rint(ldexp(f->start, l->shift - l->start_shift));
    to[1] = (int16_t)rint(f->slope * factor);
    for (k = 0; k < l->kinks; k++) {
        const double place = k < f->kinks ? f->place[k] : 128;
        to[2 + 2 * k] = (int16_t)rint(place * ONNX_C_KINK_STEPS);
        to[3 + 2 * k] = (int16_t)(k < f->kinks ? rint(f->change[k] * factor) : 0);
    }
}

/* What the file computes of a byte. */
static int onnx_c_lines_value(const onnx_c_lines *l, const int16_t *p, int q)
{
    const int32_t u = q * ONNX_C_KINK_STEPS;
    int32_t sum = p[0] * (1 << l->start_shift) + p[1] * u, y;
    int k;
    for (k = 0; k < l->kinks; k++)
        sum += (u > p[2 + 2 * k] ? u - p[2 + 2 * k] : 0) * p[3 + 2 * k];
    y = sum < 0 ? 0 : (sum + (1 << (l->shift - 1))) >> l->shift;
    return y > 255 ? 255 : y;
}

/* How many bytes of a table lines miss; those by several steps count several times. */
static int onnx_c_lines_missed(const onnx_c_lines *l, const int16_t *p, const uint8_t *table,
                               int flipped)
{
    int q, missed = 0;
    for (q = 0; q < 256; q++) {
        const int d = onnx_c_lines_value(l, p, q) - (table[q] ^ flipped);
        missed += d < 0 ? -d : d;
    }
    return missed;
}

/* Changes two numbers at a time until no byte of the table is missed or all pairs are tried, and
   keeps what misses fewer. Returns how many are missed. */
static int onnx_c_lines_adjust_two(const onnx_c_lines *l, int16_t *p, const uint8_t *table,
                                   int flipped, int missed)
{
    enum { REACH = 4, SIDE = 2 * REACH + 1 };
    const int numbers = 2 + 2 * l->kinks;
    int j, k, d, now;
    for (j = 0; j < numbers && missed; j++) {
        for (k = j + 1; k < numbers && missed; k++) {
            for (d = 0; d < SIDE * SIDE && missed; d++) {
                const int16_t first = p[j], second = p[k];
                const int a = first + d / SIDE - REACH, b = second + d % SIDE - REACH;
                if (a > INT16_MAX || a < INT16_MIN || b > INT16_MAX || b < INT16_MIN)
                    continue;
                p[j] = (int16_t)a;
                p[k] = (int16_t)b;
                now = onnx_c_lines_missed(l, p, table, flipped);
                if (now < missed) {
                    missed = now;
                } else {
                    p[j] = first;
                    p[k] = second;
                }
            }
        }
    }
    return missed;
}

/* Changes one number after another by a little where that hits more bytes of the table: rounding
   the numbers misses those bytes whose values are close to the middle between two. Returns how many
   are missed. */
static int onnx_c_lines_adjust(const onnx_c_lines *l, int16_t *p, const uint8_t *table, int flipped)
{
    enum { ROUNDS = 8, REACH = 4 };
    int missed = onnx_c_lines_missed(l, p, table, flipped), round, k, d;
    for (round = 0; round < ROUNDS && missed; round++) {
        const int before = missed;
        for (k = 0; k < 2 + 2 * l->kinks && missed; k++) {
            const int16_t from = p[k];
            int16_t best = from;
            for (d = -REACH; d <= REACH && missed; d++) {
                int now;
                if (from + d > INT16_MAX || from + d < INT16_MIN)
                    continue;
                p[k] = (int16_t)(from + d);
                now = onnx_c_lines_missed(l, p, table, flipped);
                if (now < missed) {
                    missed = now;
                    best = p[k];
                }
            }
            p[k] = best;
        }
        if (missed == before)
            break;
    }
    return missed ? onnx_c_lines_adjust_two(l, p, table, flipped, missed) : 0;
}

/* Writes the numbers of all functions, and adjusts them to their tables. Returns how many bytes
   they miss, or -1: no memory. */
static int64_t onnx_c_lines_fit(onnx_c_lines *l, const onnx_c_line_form *f, const uint8_t *table,
                                size_t entries, int flipped)
{
    const size_t numbers = (size_t)(2 + 2 * l->kinks);
    int64_t missed = 0;
    size_t e;
    l->number = (int16_t *)deploy_room(entries * numbers, sizeof *l->number);
    for (e = 0; e < entries && l->number; e++) {
        onnx_c_lines_numbers(f + e, l, l->number + e * numbers);
        missed += onnx_c_lines_adjust(l, l->number + e * numbers, table + e * 256, flipped);
    }
    return l->number ? missed : -1;
}

/* A further kink, which changes the slope by next to nothing, gives the adjustment finer steps:
   keeps it if fewer bytes are missed then. Returns how many are, or -1: no memory. */
static int64_t onnx_c_lines_refine(onnx_c_lines *l, const onnx_c_line_form *f, const uint8_t *table,
                                   size_t entries, int flipped, int64_t missed)
{
    onnx_c_lines finer = *l;
    int64_t now;
    finer.kinks++;
    now = onnx_c_lines_fit(&finer, f, table, entries, flipped);
    if (now < 0 || now >= missed) {
        free(finer.number);
        return now < 0 ? now : missed;
    }
    free(l->number);
    *l = finer;
    return now;
}

int onnx_c_lines_find(onnx_c_lines *l, const float *y, const uint8_t *table, size_t entries,
                      const onnx_c_value *grid)
{
    onnx_c_line_form *f = (onnx_c_line_form *)deploy_room(entries, sizeof *f);
    const int flipped = grid->type == ONNX_I8 ? 128 : 0;
    int64_t missed = 0;
    double v[256];
    size_t e;
    int q, bad = 0;
    memset(l, 0, sizeof *l);
    if (!f)
        return -1;
    for (e = 0; e < entries && !bad; e++) {
        for (q = 0; q < 256; q++)
            v[q] = (double)y[(size_t)q * entries + e] / (double)grid->scale + grid->zero + flipped;
        bad = onnx_c_lines_of(v, f + e);
        l->kinks = f[e].kinks > l->kinks ? f[e].kinks : l->kinks;
    }
    if (!bad && !onnx_c_lines_scale(f, entries, l))
        missed = onnx_c_lines_fit(l, f, table, entries, flipped);
    if (missed > 0 && l->kinks < ONNX_C_MOST_KINKS)
        missed = onnx_c_lines_refine(l, f, table, entries, flipped, missed);
    free(f);
    l->missed = (int)missed; /* they are listed in the file */
    if (missed < 0 || missed > (int64_t)entries) {
        free(l->number);
        l->number = NULL;
    }
    return missed < 0 ? -1 : 0;
}

/* Writes the bytes that lines miss: channel, byte, result. Returns how many there are. */
static size_t onnx_c_lines_put_missed(onnx_c *c, int node, const onnx_c_lines *l,
                                      const uint8_t *table, size_t entries, int flipped)
{
    const size_t numbers = (size_t)(2 + 2 * l->kinks);
    size_t e, n = 0;
    int q;
    deploy_put(&c->out, "/* where these are a step off: channel, byte, result */\n");
    deploy_put(&c->out, "static const uint16_t off%z_[] = {", (size_t)node);
    for (e = 0; e < entries; e++) {
        for (q = 0; q < 256; q++) {
            const int right = table[e * 256 + (size_t)q] ^ flipped;
            if (onnx_c_lines_value(l, l->number + e * numbers, q) == right)
                continue;
            deploy_put(&c->out, n % 6 ? " %z, %d, %d," : "\n    %z, %d, %d,", e, (int64_t)q,
                       (int64_t)right);
            n++;
        }
    }
    deploy_put(&c->out, "\n};\n");
    return n;
}

/* Writes the loops that put these results in place. */
static void onnx_c_lines_correct(onnx_c *c, int node, int from, int to, size_t n, size_t entries,
                                 size_t inner)
{
    const char *from_byte = c->value[from].type == ONNX_I8 ? " + 128" : "";
    while (c->depth > 1)
        onnx_c_close(c);
    onnx_c_open(c, "for (const uint16_t *p = off%z_; p < off%z_ + %z; p += 3)", (size_t)node,
                (size_t)node, 3 * n);
    onnx_c_open(c, "for (size_t i = p[0] * %z; i < %z; i += %z)", inner, c->value[to].x->count,
                entries * inner);
    onnx_c_open(c, "for (size_t k = 0; k < %z; k++)", inner);
    onnx_c_line(c, "if (x[i + k]%s == p[1])", from_byte);
    onnx_c_line(c, c->value[to].type == ONNX_I8 ? "    first[i + k] = (int8_t)(p[2] - 128);"
                                                : "    first[i + k] = (uint8_t)p[2];");
}

int onnx_c_lines_write(onnx_c *c, int node, const onnx_c_lines *l, const uint8_t *table, int from,
                       int to, size_t entries, size_t inner)
{
    const size_t count = onnx_c_tensor(c, to)->count;
    const size_t numbers = (size_t)(2 + 2 * l->kinks);
    const int over = c->node[node].over >= 0, is_signed = c->value[from].type == ONNX_I8;
    char text[48];
    size_t i, off = 0;
    int k;
    deploy_put(&c->out, "/* start, slope; place of a kink, change of the slope; ... */\n");
    deploy_put(&c->out, "static const int16_t t%z_[%z] = {", (size_t)node, entries * numbers);
    for (i = 0; i < entries * numbers; i++) {
        onnx_c_whole_text(text, l->number[i]);
        deploy_put(&c->out, i % numbers ? " %s%s" : "\n    %s%s", text,
                   i + 1 < entries * numbers ? "," : "\n};\n");
    }
    if (l->missed)
        off = onnx_c_lines_put_missed(c, node, l, table, entries,
                                      c->value[to].type == ONNX_I8 ? 128 : 0);
    onnx_c_function(c, node);
    if (off) {
        onnx_c_line(c, "const %s *x = x0;", onnx_c_type(c->value[from].type));
        onnx_c_line(c, "%s *first = y;", onnx_c_type(c->value[to].type));
    }
    if (count > entries * inner)
        onnx_c_for(c, "outer", count / entries / inner);
    onnx_c_open(c, "for (const int16_t *p = t%z_; p < t%z_ + %z; p += %z)", (size_t)node,
                (size_t)node, entries * numbers, numbers);
    if (inner > 1)
        onnx_c_for(c, "i", inner);
    onnx_c_line(c, "const int32_t u = (%s%s) * %d;", over ? "*y" : "*x0++",
                is_signed ? " + 128" : "", (int64_t)ONNX_C_KINK_STEPS);
    onnx_c_line(c, "int32_t sum = p[0] * %d + p[1] * u;", (int64_t)1 << l->start_shift);
    for (k = 0; k < l->kinks; k++)
        onnx_c_line(c, "sum += (u > p[%d] ? u - p[%d] : 0) * p[%d];", (int64_t)(2 + 2 * k),
                    (int64_t)(2 + 2 * k), (int64_t)(3 + 2 * k));
    if (c->value[to].type == ONNX_I8)
        onnx_c_line(c, "*y++ = (int8_t)(byte_(sum, %d) - 128);", (int64_t)l->shift);
    else
        onnx_c_line(c, "*y++ = (uint8_t)byte_(sum, %d);", (int64_t)l->shift);
    if (off)
        onnx_c_lines_correct(c, node, from, to, off, entries, inner);
    return 0;
}
