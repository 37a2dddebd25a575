/* SPDX-License-Identifier: MIT-0

   test_int8_products: the products of examples/int8/int8_product.c on every instruction set that
   this processor has: fuzzed shapes, extreme values, every tail, and the rounding of sums, beside a
   loop that follows the definition; quantising floats and sums of two likewise. A hash says that
   the integers are the same on other processors, too. LGELU_ISA caps nothing here: each set is
   named.

       cc -O2 -I.. test_int8_products.c tools/lgelu.c -lm -o test_int8_products &&
   ./test_int8_products [SHAPES] (4000) */
#define LGELU_TRAINER
#include "lgelu.h"
#include "tools/bits.h"
#include "tools/check.h"
#include "int8_product.c"

enum { MOST = 70, MOST_SEGMENTS = 4 };
static uint64_t seed, drawn;
static size_t draw(size_t n) { return lgelu_random(seed, 3, drawn++) % n; }

/* x·multiplier / 2^shift, half away from zero, by comparing remainders */
static int32_t rounded(int32_t sum, int32_t multiplier, int shift)
{
    const int64_t product = (int64_t)sum * multiplier;
    uint64_t size = (uint64_t)(product < 0 ? -product : product), whole, rest;
    if (shift > 63)
        return 0;
    whole = size >> shift;
    rest = size - (whole << shift);
    if (rest >= (uint64_t)1 << (shift - 1))
        whole++;
    if (whole > INT8_MOST)
        whole = INT8_MOST;
    return product < 0 ? -(int32_t)whole : (int32_t)whole;
}

/* One random shape on one set, beside the definition; returns the hash of what came out, or 0. */
static uint64_t one(int8_set set, uint64_t hash)
{
    const size_t outputs = 1 + draw(MOST), rows = 1 + draw(MOST);
    const size_t segments = 1 + draw(MOST_SEGMENTS);
    const size_t length = 1 + draw(draw(8) ? MOST : 4 * MOST);
    const size_t step = length + draw(5), row_step = 1 + draw(step);
    const size_t terms = segments * length, extreme = draw(6);
    const size_t bytes = (rows - 1) * row_step + segments * step;
    const int32_t zero = (int32_t)draw(256), to_zero = (int32_t)draw(256);
    const int32_t most = draw(3) ? 255 : (int32_t)draw(255);
    const int as_sums = draw(4) == 0;
    int8_t *w = (int8_t *)malloc(outputs * terms);
    /* exactly as much as may be read, so that a sanitizer sees a byte more */
    uint8_t *x = (uint8_t *)malloc(bytes + INT8_SLACK);
    uint8_t *y = (uint8_t *)malloc(rows * outputs);
    int32_t *z = (int32_t *)malloc(rows * outputs * sizeof *z);
    int32_t bias[MOST], multiplier[MOST];
    int shift[MOST], good = 1;
    size_t offset[MOST_SEGMENTS], first, o, k, s, r;
    int8_matrix m;
    for (k = 0; k < outputs * terms; k++)
        w[k] = (int8_t)(extreme == 0 ? 127 : extreme == 1 ? -127 : (int)draw(255) - 127);
    for (k = 0; k < bytes + INT8_SLACK; k++)
        x[k] = (uint8_t)(extreme < 2 ? 255 : draw(256));
    for (o = 0; o < outputs; o++) {
        bias[o] = (int32_t)(lgelu_random(seed, 4, o) >> 1) - (1 << 30);
        if (draw(2))
            bias[o] /= 1 << draw(28);
        if (bias[o] > INT8_MOST || bias[o] < -INT8_MOST)
            bias[o] = INT8_MOST;
        multiplier[o] = (int32_t)(draw(4) ? 1073741824 + draw(1073741824) : draw(2147483648u));
        shift[o] = 1 + (int)draw(draw(5) ? 42 : 70);
    }
    for (s = 0; s < segments; s++)
        offset[s] = s * step;
    if (int8_pack(&m, outputs, segments, length, w, bias, zero, multiplier, shift))
        abort();
    for (first = 0; first < rows; first += INT8_ROWS) {
        int8_tile t;
        size_t block = 0;
        memset(&t, 0, sizeof t);
        t.matrix = &m;
        t.offset = offset;
        t.rows = rows - first < INT8_ROWS ? rows - first : INT8_ROWS;
        t.zero = to_zero;
        t.most = most;
        for (r = 0; r < t.rows; r++) {
            t.row[r] = x + (first + r) * row_step;
            t.bytes[r] = y + (first + r) * outputs;
            t.sums[r] = as_sums ? z + (first + r) * outputs : NULL;
        }
        while (block < m.blocks) {
            const size_t n = 1 + draw(m.blocks - block);
            int8_multiply(&t, block, n, set);
            block += n;
        }
    }
    for (r = 0; r < rows; r++) {
        for (o = 0; o < outputs; o++) {
            int32_t sum = bias[o], v;
            for (s = 0; s < segments; s++) {
                for (k = 0; k < length; k++) {
                    sum += ((int32_t)x[r * row_step + s * step + k] - zero)
                           * w[o * terms + s * length + k];
                }
            }
            v = rounded(sum, multiplier[o], shift[o]);
            if (as_sums) {
                good &= z[r * outputs + o] == v;
            } else {
                v += to_zero;
                v = v < 0 ? 0 : v > most ? most : v;
                good &= y[r * outputs + o] == v;
            }
        }
    }
    hash = as_sums ? hash_memory(hash, z, rows * outputs * sizeof *z)
                   : hash_memory(hash, y, rows * outputs);
    int8_unpack(&m);
    free(w);
    free(x);
    free(y);
    free(z);
    return good ? hash : 0;
}

static void products(int8_set set, size_t shapes)
{
    static const uint64_t wanted = 0x8ed0b2b29da4eef0u;
    uint64_t hash = 14695981039346656037u, first_wrong = 0;
    char name[100];
    for (seed = 1; seed <= shapes && !first_wrong; seed++) {
        drawn = 0;
        hash = one(set, hash);
        if (!hash)
            first_wrong = seed;
    }
    snprintf(name, sizeof name, "%s: products of fuzzed shapes are those of the definition",
             int8_set_name(set));
    check(!first_wrong, name, "the first wrong one is of seed %lu", (unsigned long)first_wrong);
    if (shapes == 4000) {
        snprintf(name, sizeof name, "%s: their hash is the one of every platform",
                 int8_set_name(set));
        check(hash == wanted, name, "%08lx%08lx", (unsigned long)(hash >> 32),
              (unsigned long)(hash & 0xFFFFFFFF));
    }
}

/* Floats around every boundary between two steps, special values, every tail. */
static void quantising(int8_set set)
{
    enum { VALUES = 20000 };
    static float x[VALUES];
    uint8_t y[MOST];
    char name[100];
    size_t wrong = 0, k, n, at;
    for (seed = 1; seed <= 20; seed++) {
        const float scale = (float)exp(6 * (double)lgelu_normal(seed, 1, 0));
        const int32_t zero = (int32_t)(lgelu_random(seed, 2, 0) % 256);
        const int32_t most = seed % 3 ? 255 : (int32_t)(lgelu_random(seed, 2, 1) % 255);
        static const float special[] = { 0,         -0.0f,      1e-45f, -1e-45f,  1e38f,    -1e38f,
                                         HUGE_VALF, -HUGE_VALF, NAN,    65535.5f, -65535.5f };
        for (k = 0; k < VALUES; k++) {
            const float step = ((float)k - 10000) / 20 + (k % 2 ? 0.5f : 0.0f);
            const float v = step * scale;
            x[k] = k % 5 == 1   ? nextafterf(v, 1e30f)
                   : k % 5 == 2 ? nextafterf(v, -1e30f)
                   : k % 97 < 1 ? special[k / 97 % (sizeof special / sizeof *special)]
                                : v;
        }
        for (at = 0, n = 1; at + n < VALUES; at += n, n = n % (MOST - 1) + 1) {
            int8_quantise(y, x + at, n, scale, zero, most, set);
            for (k = 0; k < n; k++) {
                const double t = (double)(float)((double)x[at + k] / (double)scale);
                /* not the rounding mode's business: halves go to the even neighbour */
                double whole = floor(t);
                if (t - whole > 0.5 || (!(t - whole < 0.5) && fmod(whole, 2) != 0))
                    whole++;
                whole += zero;
                wrong += y[k] != (!(whole > 0) ? 0 : whole > most ? most : (int)whole);
            }
        }
    }
    snprintf(name, sizeof name, "%s: floats are quantised as ONNX says", int8_set_name(set));
    check(!wrong, name, "%lu are not", (unsigned long)wrong);
}

static void sums_of_two(int8_set set)
{
    uint8_t a[MOST], b[MOST], y[MOST];
    char name[100];
    size_t wrong = 0, k;
    for (seed = 1; seed <= 4000; seed++) {
        int8_sum s;
        size_t n;
        drawn = 0;
        n = 1 + draw(MOST - 1);
        s.zero[0] = (int32_t)draw(256);
        s.zero[1] = (int32_t)draw(256);
        s.multiplier[0] = (int32_t)draw(2147483648u);
        s.multiplier[1] = (int32_t)draw(2147483648u);
        s.shift = 1 + (int)draw(draw(5) ? 40 : 63);
        s.to_zero = (int32_t)draw(256);
        s.to_most = draw(3) ? 255 : (int32_t)draw(255);
        for (k = 0; k < n; k++) {
            a[k] = (uint8_t)draw(256);
            b[k] = (uint8_t)draw(256);
        }
        int8_add_bytes(y, a, b, n, &s, set);
        for (k = 0; k < n; k++) {
            const int64_t sum = (int64_t)(a[k] - s.zero[0]) * s.multiplier[0]
                                + (int64_t)(b[k] - s.zero[1]) * s.multiplier[1];
            int64_t v = (sum < 0 ? -sum : sum) >> (s.shift - 1);
            v = v / 2 + v % 2;
            v = v > INT8_MOST ? INT8_MOST : v;
            v = (sum < 0 ? -v : v) + s.to_zero;
            wrong += y[k] != (v < 0 ? 0 : v > s.to_most ? s.to_most : v);
        }
    }
    snprintf(name, sizeof name, "%s: sums of two bytes are rounded once", int8_set_name(set));
    check(!wrong, name, "%lu are not", (unsigned long)wrong);
}

int main(int argc, char **argv)
{
    const size_t shapes = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 4000;
    const unsigned sets = int8_sets();
    int set;
    for (set = 0; set < INT8_SETS; set++) {
        if (!(sets >> set & 1)) {
            check_skip(int8_set_name((int8_set)set), "this processor does not have it");
            continue;
        }
        products((int8_set)set, shapes);
        quantising((int8_set)set);
        sums_of_two((int8_set)set);
    }
    check(int8_set_of(sets, LGELU_ISA_SCALAR) == INT8_PLAIN
              && (int8_set_of(sets, LGELU_ISA_AVX2) <= INT8_AVX_VNNI),
          "the set is capped as lgelu.h's is", "%s",
          int8_set_name(int8_set_of(sets, LGELU_ISA_AVX2)));
    return check_end();
}
