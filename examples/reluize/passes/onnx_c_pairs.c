/* SPDX-License-Identifier: MIT-0

   onnx_c_pairs.c: sums, differences and products of two bytes in C files without floats (onnx_c.h),
   with the integers that the evaluator computes by floats.

   With a and b the bytes less their zero points, the file computes a·m + b·n, or a·b·m, shifts it
   to the nearest integer, half to even, and adds the zero point of the result. Floats have
   roundings of their own, which matter where a result is near a half. There are only 65,536 pairs
   of bytes: all are compared with the evaluator's, for multipliers in the neighbourhood of the true
   ones. Those of the fewest differences are taken; what still differs is a list in the file. */
#include "onnx_c_inside.h"
#include "int8_planes.h"

enum {
    PAIR_BYTES = 256,
    PAIR_ALL = PAIR_BYTES * PAIR_BYTES,
    PAIR_NEIGHBOURS = 3, /* steps of a multiplier on each side */
    PAIR_DIGITS = 25     /* digits of a multiplier down to such a step */
};

static int8_steps onnx_c_pair_steps(const onnx_c_value *v)
{
    int8_steps s;
    s.flip = v->type == ONNX_I8 ? 128 : 0;
    s.scale = v->scale;
    s.zero = v->zero + s.flip;
    return s;
}

/* The integer that byte q stands for. */
static int64_t onnx_c_pair_of(const onnx_c_value *v, int q)
{
    return v->type == ONNX_I8 ? (int64_t)(int8_t)q : q;
}

/* x / 2^shift to the nearest integer, half to even. */
static int64_t onnx_c_pair_shifted(int64_t x, int shift)
{
    const int64_t half = (int64_t)1 << (shift - 1), low = x >> shift, rest = x - (low << shift);
    return low + (rest > half || (rest == half && (low & 1)));
}

/* What the file computes of two bytes. */
static uint8_t onnx_c_pair_result(const onnx_c_pair *p, int qa, int qb)
{
    const int64_t a = onnx_c_pair_of(p->a, qa) - p->a->zero;
    const int64_t b = onnx_c_pair_of(p->b, qb) - p->b->zero;
    const int64_t sum = p->op == '*' ? a * b * p->m : a * p->m + b * p->n;
    const int64_t y = onnx_c_pair_shifted(sum, p->shift) + p->y->zero;
    return (uint8_t)(y < p->least ? p->least : y > p->most ? p->most : y);
}

/* Counts the pairs whose result is another one than the evaluator's, and lists the first of them.
 */
static int onnx_c_pair_count(onnx_c_pair *p, const uint8_t *right)
{
    int qa, qb, n = 0;
    for (qa = 0; qa < PAIR_BYTES; qa++) {
        for (qb = 0; qb < PAIR_BYTES; qb++) {
            const uint8_t y = right[qa * PAIR_BYTES + qb];
            if (y == onnx_c_pair_result(p, qa, qb))
                continue;
            if (n < ONNX_C_PAIR_MOST) {
                p->list[n][0] = (uint8_t)qa;
                p->list[n][1] = (uint8_t)qb;
                p->list[n][2] = y;
            }
            n++;
        }
    }
    return n;
}

/* What the evaluator computes of all pairs, within the limits. Returns NULL: there is no memory. */
static uint8_t *onnx_c_pair_right(const onnx_c_pair *p)
{
    uint8_t *bytes = (uint8_t *)deploy_room(3 * PAIR_ALL, 1), *a, *b;
    int8_pair how;
    int i;
    if (!bytes)
        return NULL;
    a = bytes + PAIR_ALL;
    b = a + PAIR_ALL;
    how.op = p->op;
    how.clamps = 0;
    how.of[0] = onnx_c_pair_steps(p->a);
    how.of[1] = onnx_c_pair_steps(p->b);
    how.to = onnx_c_pair_steps(p->y);
    for (i = 0; i < PAIR_ALL; i++) {
        a[i] = (uint8_t)(i / PAIR_BYTES);
        b[i] = (uint8_t)(i % PAIR_BYTES);
    }
    int8_compute_pair(bytes, a, b, PAIR_ALL, &how, INT8_PLAIN);
    for (i = 0; i < PAIR_ALL; i++) {
        const int64_t y = onnx_c_pair_of(p->y, bytes[i]);
        if (y < p->least)
            bytes[i] = (uint8_t)p->least;
        else if (y > p->most)
            bytes[i] = (uint8_t)p->most;
    }
    return bytes;
}

int onnx_c_pair_fit(onnx_c_pair *p)
{
    const int64_t m = p->m, n = p->n;
    const int64_t step = p->shift > PAIR_DIGITS ? (int64_t)1 << (p->shift - PAIR_DIGITS) : 1;
    const int across = p->op == '*' ? 0 : PAIR_NEIGHBOURS;
    uint8_t *right = onnx_c_pair_right(p);
    int i, k, count, least;
    int64_t best_m = m, best_n = n;
    if (!right)
        return -1;
    least = onnx_c_pair_count(p, right);
    for (i = -PAIR_NEIGHBOURS; i <= PAIR_NEIGHBOURS && least; i++) {
        for (k = -across; k <= across && least; k++) {
            p->m = m + i * step;
            p->n = n + k * step;
            count = onnx_c_pair_count(p, right);
            if (count < least) {
                least = count;
                best_m = p->m;
                best_n = p->n;
            }
        }
    }
    p->m = best_m;
    p->n = best_n;
    p->listed = onnx_c_pair_count(p, right);
    free(right);
    return p->listed > ONNX_C_PAIR_MOST;
}
