/* SPDX-License-Identifier: MIT-0

   test_int8_planes: convolutions in planes of examples/reluize/ops/int8_planes.c, on every
   instruction set that this processor has: random geometries (windows, strides, dilations, borders
   on either side, some of them negative), extreme values, tables, beside a loop that follows the
   definition; and what goes from bytes to floats and back, beside the formulas of ONNX.

       cc -O2 -I.. test_int8_planes.c int8_product.c tools/lgelu.c -lm -o test_int8_planes &&
   ./test_int8_planes [SHAPES] (3000) */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/check.h"
#include "int8_planes.c"
#include "int8_product.c"

static uint64_t seed, drawn;
static size_t draw(size_t n) { return lgelu_random(seed, 3, drawn++) % n; }

/* A random geometry with at least one output. */
static int8_planes geometry(int by_channel)
{
    int8_planes g;
    int d;
    memset(&g, 0, sizeof g);
    g.in = by_channel ? 1 : 1 + draw(11);
    g.out = by_channel ? 1 : 1 + draw(20);
    for (d = 0; d < 2; d++) {
        const size_t most = d ? 90 : 9;
        size_t reach, last;
        g.window[d] = 1 + draw(draw(3) ? 3 : 6);
        g.stride[d] = 1 + draw(by_channel && d ? 2 : 3);
        g.dilation[d] = by_channel && d ? 1 : 1 + draw(3);
        g.out_size[d] = 1 + draw(draw(3) ? 6 : most);
        g.before[d] = (ptrdiff_t)draw(4) - (draw(4) ? 0 : 3);
        reach = (g.out_size[d] - 1) * g.stride[d] + (g.window[d] - 1) * g.dilation[d] + 1;
        /* it ends somewhere around where the last window ends */
        last = reach + draw(4);
        g.size[d] = (ptrdiff_t)last - g.before[d] > 3 ? last - (size_t)g.before[d] - draw(3) : 1;
    }
    g.zero = (uint8_t)draw(256);
    g.flip = draw(2) ? 128 : 0;
    int8_planes_begin(&g);
    return g;
}

/* What output o has at a pixel, in 64 bits. */
static int64_t sum_at(const int8_planes *g, const uint8_t *x, const int8_t *w, size_t o, size_t row,
                      size_t column)
{
    int64_t sum = 0;
    size_t k, r, c;
    for (k = 0; k < g->in; k++) {
        for (r = 0; r < g->window[0]; r++) {
            for (c = 0; c < g->window[1]; c++) {
                const ptrdiff_t i =
                    (ptrdiff_t)(row * g->stride[0] + r * g->dilation[0]) - g->before[0];
                const ptrdiff_t j =
                    (ptrdiff_t)(column * g->stride[1] + c * g->dilation[1]) - g->before[1];
                const size_t tap = ((o * g->in + k) * g->window[0] + r) * g->window[1] + c;
                int byte = g->zero;
                if (i >= 0 && i < (ptrdiff_t)g->size[0] && j >= 0 && j < (ptrdiff_t)g->size[1])
                    byte = x[(k * g->size[0] + (size_t)i) * g->size[1] + (size_t)j] ^ g->flip;
                sum += (int64_t)(byte - g->zero) * w[tap];
            }
        }
    }
    return sum;
}

/* The nearest integer, half to even, of a float's value. */
static double nearest(float x)
{
    const double t = (double)x;
    double whole = floor(t);
    if (t - whole > 0.5 || (!(t - whole < 0.5) && fmod(whole, 2) != 0))
        whole++;
    return whole;
}

static uint8_t byte_of(const int8_scaling *s, size_t o, int64_t sum)
{
    const float product = (float)((double)(float)sum * (double)s->factor[o]);
    double v = nearest(product) + s->zero;
    uint8_t y;
    v = v < s->least ? s->least : v > s->most ? s->most : v;
    y = (uint8_t)(int)v;
    if (s->table)
        y = s->table[(s->tables ? 256 * o : 0) + y];
    return y;
}

/* Returns whether one random convolution is that of the definition. */
static int one(int8_set set, int by_channel)
{
    const int8_planes g = geometry(by_channel);
    const size_t taps = g.window[0] * g.window[1], inputs = g.in * g.size[0] * g.size[1];
    const size_t plane = g.out_size[0] * g.out_size[1], extreme = draw(5);
    /* exactly as much as may be read and written, so that a sanitizer sees a byte more */
    uint8_t *x = (uint8_t *)malloc(inputs), *y = (uint8_t *)malloc(g.out * plane);
    const size_t bytes = by_channel ? int8_depthwise_image(&g) : int8_planes_image(&g);
    uint8_t *image = (uint8_t *)malloc(bytes), table[20 * 256];
    int8_t *w = (int8_t *)malloc(g.out * g.in * taps);
    int8_t *packed = (int8_t *)malloc(int8_planes_weights(&g));
    float factor[20];
    int32_t first[20 + INT8_PLANES_MORE] = { 0 }, bias[20];
    int8_scaling s;
    size_t o, k;
    int good = 1;
    memset(&s, 0, sizeof s);
    for (k = 0; k < inputs; k++)
        x[k] = (uint8_t)(extreme < 2 ? 255 * extreme : draw(256));
    for (k = 0; k < g.out * g.in * taps; k++)
        w[k] = (int8_t)(extreme == 0 ? 127 : extreme == 1 ? -128 : (int)draw(256) - 128);
    for (k = 0; k < sizeof table; k++)
        table[k] = (uint8_t)draw(256);
    for (o = 0; o < g.out; o++) {
        int32_t sum = 0;
        for (k = 0; k < g.in * taps; k++)
            sum += w[o * g.in * taps + k];
        bias[o] = (int32_t)draw(2000) - 1000;
        first[o] = bias[o] - g.zero * sum;
        factor[o] = (float)exp((double)draw(800) / 100 - 10);
        factor[o] = draw(40) ? factor[o] : 3e30f;
    }
    s.factor = factor;
    s.least = draw(2) ? -128 : 0;
    s.zero = (int32_t)draw(256) + s.least;
    s.most = s.least + 255;
    if (draw(3) == 0)
        s.least = s.zero;
    s.tables = draw(2) != 0;
    s.table = draw(2) ? table : NULL;
    if (by_channel) {
        int8_depthwise_fill(&g, image, x);
        int8_depthwise(&g, image, w, first[0], 0, y, &s, set);
    } else {
        int8_planes_pack(&g, packed, w);
        for (k = 0; k < int8_planes_quads(&g); k++)
            int8_planes_fill(&g, image, x, k);
        for (k = 0; k < int8_planes_tiles(&g); k++)
            int8_planes_tile(&g, k, image, packed, first, y, &s, set);
    }
    for (o = 0; o < g.out; o++) {
        for (k = 0; k < plane; k++) {
            const int64_t sum = bias[o] + sum_at(&g, x, w, o, k / g.out_size[1], k % g.out_size[1]);
            good &= y[o * plane + k] == byte_of(&s, o, sum);
        }
    }
    free(x);
    free(y);
    free(image);
    free(w);
    free(packed);
    return good;
}

static void convolutions(int8_set set, uint64_t shapes, int by_channel)
{
    uint64_t first_wrong = 0;
    char name[100];
    for (seed = 1; seed <= shapes && !first_wrong; seed++) {
        drawn = 0;
        if (!one(set, by_channel))
            first_wrong = seed;
    }
    snprintf(name, sizeof name, "%s: convolutions%s are those of the definition",
             int8_set_name(set), by_channel ? " of one channel a group" : "");
    check(!first_wrong, name, "the first wrong one is of seed %lu", (unsigned long)first_wrong);
}

/* ---- grids ---- */

static int8_steps grid(void)
{
    int8_steps g;
    g.scale = (float)exp((double)draw(600) / 100 - 3);
    g.zero = (int32_t)draw(256);
    g.flip = draw(2) ? 128 : 0;
    return g;
}

static float value_of(const int8_steps *g, uint8_t x)
{
    return (float)((double)((x ^ g->flip) - g->zero) * (double)g->scale);
}

static uint8_t quantized(const int8_steps *g, float x)
{
    const float t = (float)((double)x / (double)g->scale);
    double whole = isnan(x) ? 0 : nearest(t);
    whole += g->zero;
    return (uint8_t)((uint8_t)(whole < 0 ? 0 : whole > 255 ? 255 : whole) ^ g->flip);
}

static void grids(int8_set set)
{
    enum { MOST = 150 };
    static const float special[] = { 0,      -0.0f,     1e-45f,     -1e-45f, 1e38f,
                                     -1e38f, HUGE_VALF, -HUGE_VALF, NAN };
    uint8_t a[MOST], b[MOST], y[MOST], table[256];
    float x[MOST], back[MOST], factor[MOST];
    int32_t sum[MOST];
    size_t to = 0, from = 0, pairs = 0, looked_up = 0, scaled = 0, each = 0, k;
    char name[100];
    for (seed = 1; seed <= 3000; seed++) {
        int8_scaling s;
        int8_pair p;
        size_t n;
        drawn = 0;
        n = 1 + draw(MOST);
        memset(&p, 0, sizeof p);
        memset(&s, 0, sizeof s);
        p.op = "+-*"[draw(3)];
        p.clamps = draw(2) != 0;
        p.of[0] = grid();
        p.of[1] = grid();
        p.to = grid();
        for (k = 0; k < 256; k++)
            table[k] = (uint8_t)draw(256);
        for (k = 0; k < n; k++) {
            a[k] = (uint8_t)draw(256);
            b[k] = (uint8_t)draw(256);
            x[k] = ((float)draw(1200) - 600) / 2 * p.to.scale;
            x[k] = draw(20) ? x[k] : special[draw(sizeof special / sizeof *special)];
            sum[k] =
                (int32_t)draw(draw(2) ? 200000 : 2000000000u) - (draw(2) ? 100000 : 1000000000);
            factor[k] = (float)exp((double)draw(800) / 100 - 12);
        }
        s.factor = factor;
        s.least = draw(2) ? -128 : 0;
        s.most = s.least + 255;
        s.zero = s.least + (int32_t)draw(256);
        int8_quantize(y, x, n, &p.to, set);
        for (k = 0; k < n; k++)
            to += y[k] != quantized(&p.to, x[k]);
        int8_dequantize(back, a, n, p.of, set);
        for (k = 0; k < n; k++)
            from += back[k] < value_of(p.of, a[k]) || back[k] > value_of(p.of, a[k]);
        int8_compute_pair(y, a, b, n, &p, set);
        for (k = 0; k < n; k++) {
            const double u = (double)value_of(p.of, a[k]), v = (double)value_of(p.of + 1, b[k]);
            float t = (float)(p.op == '+' ? u + v : p.op == '-' ? u - v : u * v);
            t = p.clamps && t < 0 ? 0 : t;
            pairs += y[k] != quantized(&p.to, t);
        }
        int8_from_table(y, a, n, table, set);
        for (k = 0; k < n; k++)
            looked_up += y[k] != table[a[k]];
        int8_to_bytes(y, sum, n, 0, 1, &s, set);
        for (k = 0; k < n; k++)
            each += y[k] != byte_of(&s, k, sum[k]);
        int8_to_floats(back, sum, n, factor, set);
        for (k = 0; k < n; k++) {
            const float v = (float)((double)(float)sum[k] * (double)factor[k]);
            scaled += back[k] < v || back[k] > v;
        }
    }
    snprintf(name, sizeof name, "%s: bytes, floats, tables and pairs", int8_set_name(set));
    check(!(to + from + pairs + looked_up + each + scaled), name,
          "wrong: %lu quantized, %lu dequantized, %lu of pairs, %lu looked up, %lu + %lu scaled",
          (unsigned long)to, (unsigned long)from, (unsigned long)pairs, (unsigned long)looked_up,
          (unsigned long)each, (unsigned long)scaled);
}

int main(int argc, char **argv)
{
    const uint64_t shapes = argc > 1 ? strtoul(argv[1], NULL, 10) : 3000;
    const unsigned sets = int8_sets();
    int set;
    for (set = 0; set < INT8_SETS; set++) {
        if (!(sets >> set & 1)) {
            check_skip(int8_set_name((int8_set)set), "this processor does not have it");
            continue;
        }
        convolutions((int8_set)set, shapes, 0);
        convolutions((int8_set)set, shapes, 1);
        grids((int8_set)set);
    }
    return check_end();
}
