/* SPDX-License-Identifier: MIT-0

   draw_pictures: draws the data set that ships with the repository, ten kinds of small pictures, 28
   x 28, four greys.

       cc -O2 draw_pictures.c data.c -o draw_pictures -lm && ./draw_pictures ../pictures

   Picture i of stream s (0 train, 1 test) shows class i mod 10 and depends on (s, i) alone: its
   pose, pen, fill and dirt come from Philox4x32-10 with key s and counter i. All arithmetic is on
   integers, so every machine draws the same pixels. */
#include "part.h"
#include "data.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIDE = SHEET_SIDE,
    PIXEL = 256,
    UNIT = 256,
    POINTS = 64
}; /* a pixel and a unit of the drawings have 256 steps each */

/* ---- random numbers: Philox4x32-10 (Salmon et al., 2011) ---- */
typedef struct {
    uint32_t key[2], counter[4], word[4];
    unsigned left;
} philox;

static void philox_block(uint32_t out[4], const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3], k0 = key[0],
             k1 = key[1];
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        uint64_t p = (uint64_t)0xD2511F53u * a, q = (uint64_t)0xCD9E8D57u * c;
        a = (uint32_t)(q >> 32) ^ b ^ k0;
        b = (uint32_t)q;
        c = (uint32_t)(p >> 32) ^ d ^ k1;
        d = (uint32_t)p;
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}

/* A whole number from low to high. Never two calls in one expression: C leaves their order open. */
static int64_t pick(philox *g, int low, int high)
{
    if (g->left == 0) {
        philox_block(g->word, g->counter, g->key);
        g->counter[1]++;
        g->left = 4;
    }
    return low + (int64_t)(((uint64_t)g->word[--g->left] * (uint32_t)(high - low + 1)) >> 32);
}

/* ---- the drawings: two for each class, in a square from -28 to 28, y down ---- */
enum { END, LINE, LOOP, OVAL, ARC, INK };
/* LINE n, points | LOOP n, points: closed | OVAL x y rx ry | ARC x y rx ry from to (32 to a turn,
   clockwise from 3 o'clock). INK: what follows is detail, dark on a solid body and never filled */
static const signed char
    drawing[SHEET_CLASSES][2][80] = {
        { /* house */
          { LOOP, 4,  9,   -26,  16, -26, 16, -6,   9, -6,  LOOP, 4, -18,
            -4,   18, -4,  18,   25, -18, 25, LOOP, 3, -26, -3,   0, -27,
            26,   -3, INK, LOOP, 4,  -5,  25, -5,   9, 5,   9,    5, 25 },
          { LOOP, 4,  -24, 0,   24,   0, 24,  22,   -24, 22, LOOP, 4,  -28, 0,  -17,  -18, 17,
            -18,  28, 0,   INK, LOOP, 4, -17, 6,    -8,  6,  -8,   14, -17, 14, LOOP, 4,   8,
            6,    17, 6,   17,  14,   8, 14,  LOOP, 4,   -4, 22,   -4, 7,   4,  7,    4,   22 } },
        { /* tree */
          { LOOP, 4,    -4, 16,  4, 16, 4,   28, -4, 28,   LOOP, 3,   -22, 18, 0,   -8, 22,
            18,   LOOP, 3,  -17, 3, 0,  -18, 17, 3,  LOOP, 3,    -12, -10, 0,  -28, 12, -10 },
          { LOOP, 4,  -4,   2,  4,  2,  7,  28,   -7, 28,  OVAL, -11, -4,
            13,   11, OVAL, 11, -4, 13, 11, OVAL, 0,  -15, 14,   13 } },
        { /* boat */
          { LOOP, 4, -27, 11,  27, 11, 17, 25, -17,  25, LINE, 2,   0,  11, 0,   -28,
            LOOP, 3, 3,   -26, 3,  5,  22, 5,  LOOP, 3,  -3,   -18, -3, 5,  -17, 5 },
          { LOOP, 4,  3,   -24,  11, -24,  11, -8,  3,    -8, LOOP, 4,  -14, -8,  14,
            -8,   14, 6,   -14,  6,  LOOP, 5,  -27, 6,    27, 6,    20, 23,  -20, 23,
            -24,  16, INK, OVAL, -6, -1,   3,  3,   OVAL, 5,  -1,   3,  3 } },
        { /* fish */
          { LOOP, 3,    10,  0,  28, -13, 28,  13,  OVAL, -5, 0, 21, 13,
            INK,  OVAL, -16, -3, 2,  2,   ARC, -12, 0,    9,  9, -6, 6 },
          { LOOP, 4,    -6, -9,  4, -22,  10,  -18, 8,   -6, LOOP, 3,    12,  0,   28, -10, 24,
            10,   LOOP, 6,  -28, 0, -14,  -11, 4,   -11, 17, 0,    4,    11,  -14, 11, INK, LINE,
            2,    -4,   -9, -4,  9, LINE, 2,   4,   -9,  4,  9,    OVAL, -17, -2,  2,  2 } },
        { /* cup */
          { ARC, 11,   4,   13, 11,   -9, 9,   LOOP, 4,   -18, -12, 12,  -12,
            10,  25,   -16, 25, LINE, 4,  -9,  -17,  -6,  -20, -10, -24, -7,
            -28, LINE, 4,   4,  -17,  7,  -20, 3,    -24, 6,   -28 },
          { ARC, 17,  -3, 11,  9, -10,  10, LOOP, 6,  -23, -13, 21, -13, 17,  7, 8,
            16,  -10, 16, -19, 7, LOOP, 4,  -27,  20, 25,  20,  17, 26,  -19, 26 } },
        { /* umbrella */
          { LINE, 2,  0,  -24,  0,    -28, LINE, 2,   0,   2,   0,    19, ARC, -5,  19,  5,
            8,    0,  16, LOOP, 7,    -27, 2,    -23, -12, -13, -21,  0,  -24, 13,  -21, 23,
            -12,  27, 2,  INK,  LINE, 2,   0,    -23, -9,  2,   LINE, 2,  0,   -23, 9,   2 },
          { LINE, 2, 0,   -6, 0,   21, ARC, 5,  21, 5, 6,  0, 16, LOOP, 10, -27, -2, -18,
            -19,  0, -27, 18, -19, 27, -2,  18, -7, 9, -1, 0, -7, -9,   -1, -18, -7 } },
        { /* cat */
          { LOOP, 3,    -22, -6,   -20, -27, -5,   -16,  LOOP, 3,    22, -6, 20,
            -27,  5,    -16, OVAL, 0,   4,   23,   19,   INK,  OVAL, -9, -1, 2,
            3,    OVAL, 9,   -1,   2,   3,   LINE, 3,    -5,   9,    0,  12, 5,
            9,    LINE, 2,   -28,  5,   -15, 8,    LINE, 2,    28,   5,  15, 8 },
          { LINE, 4,    8,   25,   23,  23,   26,  9,  20,  0,    OVAL, 0,   14,  13,
            14,   LOOP, 3,   -13,  -13, -12,  -28, -2, -20, LOOP, 3,    13,  -13, 12,
            -28,  2,    -20, OVAL, 0,   -10,  14,  11, INK, OVAL, -5,   -11, 2,   2,
            OVAL, 5,    -11, 2,    2,   LINE, 2,   0,  14,  0,    27 } },
        { /* rocket */
          { LOOP, 3,  -6, 17, 0,   28, 6,  17,  LOOP, 3,    -8, 3,   -21, 22,  -8, 18,
            LOOP, 3,  8,  3,  21,  22, 8,  18,  LOOP, 7,    0,  -28, 7,   -20, 10, -8,
            9,    18, -9, 18, -10, -8, -7, -20, INK,  OVAL, 0,  -5,  4,   4 },
          { LOOP, 4,   -6,  4,    -19, 15,   -19, 26, -6,  20,   LOOP, 4,  6,  4,  19,
            15,   19,  26,  6,    20,  LOOP, 5,   0,  -28, 7,    -14,  7,  22, -7, 22,
            -7,   -14, INK, LINE, 2,   -7,   -12, 7,  -12, LINE, 2,    -7, 12, 7,  12 } },
        { /* flower */
          { LINE, 2, 0,   0, 1,    28,   LOOP, 4,   1, 23,  8,    14, 17, 13, 11, 21,
            OVAL, 0, -21, 7, 8,    OVAL, 12,   -12, 8, 7,   OVAL, 8,  2,  7,  7,  OVAL,
            -8,   2, 7,   7, OVAL, -12,  -12,  8,   7, INK, OVAL, 0,  -8, 5,  5 },
          { LINE, 2,   0, -2,  0,  28,  LOOP, 3,  0,    27, -17, 9,   -5,  15,
            LOOP, 3,   0, 27,  17, 6,   5,    14, LOOP, 9,  -14, -25, -6,  -16,
            0,    -28, 6, -16, 14, -25, 14,   -8, 6,    0,  -6,  0,   -14, -8 } },
        { /* key */
          { LINE, 2,  -3, 0,    27,  0, LINE, 2,  17,  0,    17,  11, LINE, 2, 25,
            0,    25, 10, OVAL, -15, 0, 12,   12, INK, OVAL, -17, 0,  4,    4 },
          { LINE, 2, 0, -4,  0,  27,  LINE, 4,  0,   17,  9,   17,   9, 26,  0, 26,
            LOOP, 4, 0, -28, 13, -15, 0,    -3, -13, -15, INK, OVAL, 0, -16, 4, 4 } }
    };

/* ---- one picture ---- */
typedef struct {
    philox random;
    unsigned char grey[SIDE][SIDE];                         /* 0 to 3 */
    int64_t mirror, bend[2], keystone[2], turn[4], move[2]; /* the pose */
    int64_t radius, wobble; /* the pen, in 1/256 pixel and 1/256 unit */
} canvas;

/* From the square of the tables to the canvas: bend, keystone, turn with scale and shear, shift.
   Divisions, not shifts: a negative number shifted right is each compiler's own business. */
static void place(canvas *c, int64_t p[2], int64_t x, int64_t y)
{
    x += pick(&c->random, -256, 256) * c->wobble / 256;
    y += pick(&c->random, -256, 256) * c->wobble / 256;
    x += c->bend[0] * y / UNIT * y / UNIT / 256;
    y += c->bend[1] * x / UNIT * x / UNIT / 256;
    int64_t w = 65536 + (c->keystone[0] * x + c->keystone[1] * y) / UNIT;
    x = x * c->mirror * 65536 / w;
    y = y * 65536 / w;
    p[0] = c->move[0] + (c->turn[0] * x + c->turn[1] * y) / 65536;
    p[1] = c->move[1] + (c->turn[2] * x + c->turn[3] * y) / 65536;
}

/* A stroke with round ends; its rim is one third of a pixel wide per grey. Dark ink erases. */
static void stroke(canvas *c, const int64_t a[2], const int64_t b[2], int dark)
{
    int64_t r = c->radius + PIXEL / 2, bx = b[0] - a[0], by = b[1] - a[1],
            length2 = bx * bx + by * by;
    for (int64_t row = 0; row < SIDE; row++) {
        for (int64_t column = 0; column < SIDE; column++) {
            int64_t x = column * PIXEL + PIXEL / 2 - a[0], y = row * PIXEL + PIXEL / 2 - a[1],
                    along = x * bx + y * by, d2;
            if ((x < -r && x - bx < -r) || (x > r && x - bx > r) || (y < -r && y - by < -r)
                || (y > r && y - by > r))
                continue;
            if (along <= 0)
                d2 = x * x + y * y;
            else if (along >= length2)
                d2 = (x - bx) * (x - bx) + (y - by) * (y - by);
            else
                d2 = (x * by - y * bx) * (x * by - y * bx) / length2;
            unsigned char grey = 0, *to = &c->grey[row][column];
            for (int k = -1; k <= 1; k++) {
                int64_t rim = c->radius + k * PIXEL / 3;
                if (rim > 0 && d2 < rim * rim)
                    grey++;
            }
            if (dark) {
                if (*to > 3 - grey)
                    *to = (unsigned char)(3 - grey);
            } else if (*to < grey) {
                *to = grey;
            }
        }
    }
}

/* Every pixel whose centre lies inside (even-odd rule) gets the grey, so that a body hides what is
   behind it. */
static void fill(canvas *c, int64_t (*p)[2], int n, int grey)
{
    for (int64_t row = 0; row < SIDE; row++) {
        for (int64_t column = 0; column < SIDE; column++) {
            int64_t x = column * PIXEL + PIXEL / 2, y = row * PIXEL + PIXEL / 2;
            int inside = 0;
            for (int i = 0, j = n - 1; i < n; j = i++) {
                int64_t dy = p[j][1] - p[i][1],
                        side = (p[j][0] - p[i][0]) * (y - p[i][1]) - (x - p[i][0]) * dy;
                if ((p[i][1] > y) != (p[j][1] > y) && (side > 0) == (dy > 0))
                    inside = !inside;
            }
            if (inside)
                c->grey[row][column] = (unsigned char)grey;
        }
    }
}

static void draw(canvas *c, const signed char *d, int body)
{
    /* a quarter turn in 8 steps, 1024 = 1 */
    static const int sine[9] = { 0, 200, 392, 569, 724, 851, 946, 1004, 1024 };
    int64_t p[POINTS][2];
    for (int ink = 0; *d != END;) {
        int kind = *d++, n = 0;
        if (kind == INK) {
            ink = 1;
            continue;
        }
        if (kind == LINE || kind == LOOP) {
            for (int count = *d++; n < count; n++, d += 2)
                place(c, p[n], d[0] * UNIT, d[1] * UNIT);
        } else {
            int from = kind == ARC ? d[4] : 0, to = kind == ARC ? d[5] : 30;
            for (int t = from; t <= to; t += kind == ARC ? 1 : 2, n++) {
                int s = (t + 32) % 32, q = s % 8, up = sine[q], over = sine[8 - q];
                /* by the quarter of the circle */
                const int dx[4] = { over, -up, -over, up }, dy[4] = { up, over, -up, -over };
                place(c, p[n], d[0] * UNIT + d[2] * dx[s / 8] * UNIT / 1024,
                      d[1] * UNIT + d[3] * dy[s / 8] * UNIT / 1024);
            }
            d += kind == ARC ? 6 : 4;
        }
        int closed = kind == LOOP || kind == OVAL, dark = ink && body == 3;
        if (closed && !ink)
            fill(c, p, n, body);
        for (int i = closed ? 0 : 1; i < n; i++)
            stroke(c, p[i ? i - 1 : n - 1], p[i], dark);
    }
}

/* The greys (0 to 3, row by row) of picture `index` of a stream. */
static void draw_picture(unsigned char *grey, uint32_t stream, uint32_t index)
{
    canvas c;
    memset(&c, 0, sizeof c);
    philox *g = &c.random;
    g->key[0] = stream;
    g->key[1] = 0x6C67656Cu;
    g->counter[0] = index;

    /* a turn by 2 atan(k/64), up to 35 degrees either way, has a rational cosine and sine */
    int64_t k = pick(g, -20, 20), cosine = (4096 - k * k) * 65536 / (4096 + k * k),
            sine = 128 * k * 65536 / (4096 + k * k);
    /* 1/256 pixel per unit */
    int64_t width = pick(g, 85, 112), height = width + pick(g, -16, 16), shear = pick(g, -50, 50);
    c.turn[0] = cosine * width / UNIT;
    c.turn[1] = (cosine * shear / 256 - sine) * height / UNIT;
    c.turn[2] = sine * width / UNIT;
    c.turn[3] = (sine * shear / 256 + cosine) * height / UNIT;
    for (int i = 0; i < 2; i++)
        c.move[i] = SIDE * PIXEL / 2 + pick(g, -500, 500);
    for (int i = 0; i < 2; i++)
        c.keystone[i] = pick(g, -200, 200);
    for (int i = 0; i < 2; i++)
        c.bend[i] = pick(g, -2, 2);
    c.mirror = 1 - 2 * pick(g, 0, 1);
    c.radius = pick(g, 150, 300);
    c.wobble = pick(g, 0, 3 * UNIT / 2);
    int64_t variant = pick(g, 0, 1), style = pick(g, 0, 5);
    int body = 0;

    int64_t a[2], b[2];
    /* a mark behind */
    if (pick(g, 0, 1)) {
        for (int i = 0; i < 2; i++)
            a[i] = pick(g, 0, SIDE * PIXEL);
        for (int i = 0; i < 2; i++)
            b[i] = a[i] + pick(g, -6 * PIXEL, 6 * PIXEL);
        stroke(&c, a, b, 0);
    }
    if (style >= 3)
        body = style < 5 ? 1 : 3;
    draw(&c, drawing[index % SHEET_CLASSES][variant], body);
    /* a swipe of the eraser */
    if (pick(g, 0, 3) == 0) {
        for (int i = 0; i < 2; i++)
            a[i] = pick(g, 0, SIDE * PIXEL);
        for (int i = 0; i < 2; i++)
            b[i] = pick(g, 0, SIDE * PIXEL);
        c.radius = pick(g, 200, 480);
        stroke(&c, a, b, 1);
    }
    for (int64_t specks = pick(g, 0, 3); specks > 0; specks--) {
        int64_t row = pick(g, 0, SIDE - 1), column = pick(g, 0, SIDE - 1);
        c.grey[row][column] = (unsigned char)pick(g, 0, 3);
    }
    memcpy(grey, c.grey, sizeof c.grey);
}

/* ---- the sheets: greyscale PNG of two bits per pixel, which stb_image reads but stb_image_write
   does not write ---- */
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#pragma GCC diagnostic ignored "-Wdouble-promotion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wundef"
#endif
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STBI_WRITE_NO_STDIO
#include <stb/stb_image_write.h>
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

static void big32(unsigned char *to, size_t v)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(v >> (24 - 8 * i));
}

static void chunk(FILE *f, const char *type, const unsigned char *data, size_t size)
{
    unsigned char head[8], tail[4];
    big32(head, size);
    memcpy(head + 4, type, 4);
    big32(tail, data_crc32(data_crc32(0, head + 4, 4), data, size));
    fwrite(head, 1, 8, f);
    fwrite(data, 1, size, f);
    fwrite(tail, 1, 4, f);
}

typedef struct {
    uint32_t stream, number;
    long bytes;
} sheet;

static int fill_sheet(void *user, FILE *f)
{
    /* a filter byte (0: none), four pixels per byte */
    enum { ROW = 1 + SHEET_PIXELS / 4 };
    sheet *s = (sheet *)user;
    unsigned char tile[SIDE * SIDE], header[13] = { 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0 };
    unsigned char *rows = (unsigned char *)calloc(SHEET_PIXELS, ROW), *packed = NULL;
    int size = 0;
    if (rows) {
        for (uint32_t t = 0; t < SHEET_TILES; t++) {
            draw_picture(tile, s->stream, s->number * SHEET_TILES + t);
            for (size_t i = 0; i < SIDE * SIDE; i++) {
                size_t row = t / SHEET_ACROSS * SIDE + i / SIDE,
                       column = t % SHEET_ACROSS * SIDE + i % SIDE;
                rows[row * ROW + 1 + column / 4] |=
                    (unsigned char)(tile[i] << (6 - 2 * (column % 4)));
            }
        }
        packed = stbi_zlib_compress(rows, SHEET_PIXELS * ROW, &size, 64);
        free(rows);
    }
    if (!packed) {
        errno = ENOMEM;
        return -1;
    }
    fwrite("\x89PNG\r\n\x1a\n", 1, 8, f);
    big32(header, SHEET_PIXELS);
    big32(header + 4, SHEET_PIXELS);
    chunk(f, "IHDR", header, sizeof header);
    chunk(f, "IDAT", packed, (size_t)size);
    chunk(f, "IEND", header, 0);
    free(packed);
    s->bytes = ftell(f);
    return ferror(f);
}

#ifndef DRAW_PICTURES_NO_MAIN /* a test includes this file to draw again what the sheets hold */
int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: draw_pictures FOLDER\n");
        return 2;
    }
    long total = 0;
    for (uint32_t i = 0; i < SHEET_TRAIN + SHEET_TEST; i++) {
        char path[PART_PATH];
        sheet s = { i >= SHEET_TRAIN, i, 0 };
        if (s.stream)
            s.number -= SHEET_TRAIN;
        snprintf(path, sizeof path, "%s/%s_%u.png", argv[1], s.stream ? "test" : "train",
                 (unsigned)s.number);
        if (part_replace(path, fill_sheet, &s)) {
            fprintf(stderr, "draw_pictures: %s: %s\n", path, strerror(errno));
            return 1;
        }
        printf("%s: %d pictures of %d classes, %ld bytes\n", path, SHEET_TILES, SHEET_CLASSES,
               s.bytes);
        total += s.bytes;
    }
    printf("%ld bytes in all\n", total);
    if (fflush(stdout)) {
        fprintf(stderr, "draw_pictures: standard output: %s\n", strerror(errno));
        return 1;
    }
    return 0;
}
#endif
