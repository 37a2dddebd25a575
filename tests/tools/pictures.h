/* SPDX-License-Identifier: MIT-0
   pictures.h makes a small image of each format that examples/common/data.c reads, in memory, for
   its test and its fuzzer. Each has WIDE x HIGH pixels (whole blocks of 8, at most 127) and the
   optional parts of its format: a comment, a palette, runs, an unknown chunk. */
#ifndef PICTURES_H
#define PICTURES_H
#include "check.h"
#include <stdint.h>

#ifndef PICTURE_WIDE
#define PICTURE_WIDE 64
#define PICTURE_HIGH 40
#endif
enum { WIDE = PICTURE_WIDE, HIGH = PICTURE_HIGH, FORMATS = 9 };
static const char *const format_name[FORMATS] = { "PNG", "JPEG",        "BMP",
                                                  "TGA", "TGA in runs", "TGA with a palette",
                                                  "PPM", "PGM",         "GIF" };
enum {
    PICTURE_PNG,
    PICTURE_JPEG,
    PICTURE_BMP,
    PICTURE_TGA,
    PICTURE_TGA_RUNS,
    PICTURE_TGA_PALETTE,
    PICTURE_PPM,
    PICTURE_PGM,
    PICTURE_GIF
};

static void picture_byte(memory_file *f, unsigned v)
{
    unsigned char b = (unsigned char)v;
    memory_append(&b, 1, f);
}

static void picture_16(memory_file *f, unsigned v)
{
    picture_byte(f, v & 255);
    picture_byte(f, v >> 8);
}

static void picture_text(memory_file *f, const char *text, size_t n) { memory_append(text, n, f); }

/* Makes a PNG of stored blocks of deflate, so that no compressor is needed. */
static uint32_t picture_crc(const unsigned char *p, size_t n)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

static void picture_big(memory_file *f, uint32_t v)
{
    for (int i = 24; i >= 0; i -= 8)
        picture_byte(f, v >> i & 255);
}

static void picture_chunk(memory_file *f, const char *name, const unsigned char *p, size_t n)
{
    size_t from;
    picture_big(f, (uint32_t)n);
    from = f->size;
    picture_text(f, name, 4);
    if (n)
        memory_append(p, n, f);
    picture_big(f, picture_crc(f->data + from, n + 4));
}

static void picture_png(memory_file *f, const unsigned char *rgb)
{
    static const unsigned char size[13] = { 0, 0, 0, WIDE, 0, 0, 0, HIGH, 8, 2 };
    memory_file z = { NULL, 0, 0 };
    /* This is the checksum Adler-32. */
    uint32_t a = 1, b = 0;
    picture_text(&z, "\x78\x01", 2);
    for (int row = 0; row < HIGH; row++) {
        picture_byte(&z, row == HIGH - 1);
        picture_16(&z, 3 * WIDE + 1);
        picture_16(&z, 0xFFFF ^ (3 * WIDE + 1));
        for (int i = -1; i < 3 * WIDE; i++) {
            unsigned v = i < 0 ? 0 : rgb[row * 3 * WIDE + i];
            picture_byte(&z, v);
            a = (a + v) % 65521;
            b = (b + a) % 65521;
        }
    }
    picture_big(&z, b << 16 | a);
    picture_text(f, "\x89PNG\r\n\x1A\n", 8);
    picture_chunk(f, "IHDR", size, 13);
    picture_chunk(f, "teSt", (const unsigned char *)"nobody knows", 12);
    picture_chunk(f, "IDAT", z.data, z.size);
    picture_chunk(f, "IEND", NULL, 0);
    free(z.data);
}

/* Makes a baseline JPEG in grey, which has only the mean of each 8 x 8 block, with twelve codes of
 * four bits for DC and one of one bit for AC. */
static void picture_bits(memory_file *f, uint32_t *have, int *count, unsigned v, int bits)
{
    *have = *have << bits | (v & ((1u << bits) - 1));
    *count += bits;
    while (*count >= 8) {
        unsigned byte = *have >> (*count - 8) & 255;
        picture_byte(f, byte);
        if (byte == 255)
            picture_byte(f, 0);
        *count -= 8;
    }
}

static void picture_jpeg(memory_file *f, const unsigned char *rgb)
{
    uint32_t have = 0;
    int count = 0, last = 0;
    picture_text(f, "\xFF\xD8\xFF\xFE\0\6test\xFF\xDB\0\x43\0", 15);
    /* With this table a difference of 1 in DC is a difference of 1 in grey. */
    for (int i = 0; i < 64; i++)
        picture_byte(f, 8);
    picture_text(f, "\xFF\xC0\0\xB\x8\0", 6);
    picture_byte(f, HIGH);
    picture_byte(f, 0);
    picture_byte(f, WIDE);
    picture_text(f, "\1\1\x11\0", 4);
    picture_text(f, "\xFF\xC4\0\x1F\0\0\0\0\xC\0\0\0\0\0\0\0\0\0\0\0\0\0\1\2\3\4\5\6\7\x8\x9\xA\xB",
                 33);
    picture_text(f, "\xFF\xC4\0\x14\x10\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);
    picture_text(f, "\xFF\xDA\0\x8\1\1\0\0\x3F\0", 10);
    for (int row = 0; row < HIGH; row += 8) {
        for (int column = 0; column < WIDE; column += 8) {
            int sum = 0, size = 0, d;
            for (int i = 0; i < 64; i++)
                sum += rgb[3 * ((row + i / 8) * WIDE + column + i % 8)];
            d = sum / 64 - 128 - last;
            last += d;
            while ((d < 0 ? -d : d) >> size)
                size++;
            picture_bits(f, &have, &count, (unsigned)size, 4);
            if (size)
                picture_bits(f, &have, &count, (unsigned)(d < 0 ? d - 1 : d), size);
            picture_bits(f, &have, &count, 0, 1);
        }
    }
    /* The last byte is padded with ones. */
    picture_bits(f, &have, &count, 127, 7);
    picture_text(f, "\xFF\xD9", 2);
}

/* Makes a GIF of 128 greys with codes of eight bits; the table is cleared before they grow. */
static void picture_gif(memory_file *f, const unsigned char *rgb)
{
    picture_text(f, "GIF89a", 6);
    picture_16(f, WIDE);
    picture_16(f, HIGH);
    picture_text(f, "\x86\0\0", 3);
    for (unsigned i = 0; i < 3 * 128; i++)
        picture_byte(f, i / 3 * 2);
    picture_text(f, "\x21\xFE\4test\0\x2C\0\0\0\0", 13);
    picture_16(f, WIDE);
    picture_16(f, HIGH);
    picture_text(f, "\0\7", 2);
    for (int n = 0; n < WIDE * HIGH; n += 100) {
        int k = WIDE * HIGH - n < 100 ? WIDE * HIGH - n : 100;
        picture_byte(f, (unsigned)k + 1);
        picture_byte(f, 128);
        for (int i = 0; i < k; i++)
            picture_byte(f, rgb[3 * (n + i)] / 2u);
    }
    picture_text(f, "\1\x81\0\x3B", 4);
}

static void picture_tga_header(memory_file *f, unsigned palette, unsigned kind, unsigned bits)
{
    picture_byte(f, 4);
    picture_byte(f, palette > 0);
    picture_byte(f, kind);
    picture_16(f, 0);
    picture_16(f, palette);
    picture_byte(f, palette ? 24 : 0);
    picture_16(f, 0);
    picture_16(f, 0);
    picture_16(f, WIDE);
    picture_16(f, HIGH);
    /* The first row is the top one. */
    picture_byte(f, bits);
    picture_byte(f, 0x20);
    picture_text(f, "test", 4);
}

/* Makes an image of a format. The caller frees the data. */
static memory_file picture_make(int format, const unsigned char *rgb)
{
    memory_file f = { NULL, 0, 0 };
    char head[64];
    size_t i, all = WIDE * HIGH;
    switch (format) {
    case PICTURE_PNG: picture_png(&f, rgb); break;
    case PICTURE_JPEG: picture_jpeg(&f, rgb); break;
    case PICTURE_GIF: picture_gif(&f, rgb); break;
    case PICTURE_BMP: /* blue comes first, and the first row is the top one */
        picture_text(&f, "BM", 2);
        picture_16(&f, 54 + 3 * WIDE * HIGH);
        picture_text(&f, "\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0", 14);
        picture_16(&f, WIDE);
        picture_16(&f, 0);
        picture_16(&f, 65536 - HIGH);
        picture_text(&f, "\xFF\xFF\1\0\x18\0", 6);
        for (i = 0; i < 24; i++)
            picture_byte(&f, 0);
        for (i = 0; i < 3 * all; i++)
            picture_byte(&f, rgb[i + 2 - 2 * (i % 3)]);
        break;
    case PICTURE_TGA:
        picture_tga_header(&f, 0, 2, 24);
        for (i = 0; i < 3 * all; i++)
            picture_byte(&f, rgb[i + 2 - 2 * (i % 3)]);
        break;
    case PICTURE_TGA_RUNS: /* a run of four equal pixels, then four literal pixels */
        picture_tga_header(&f, 0, 10, 24);
        for (i = 0; i < 3 * all; i++) {
            if (i % 24 == 0)
                picture_byte(&f, 131);
            if (i % 24 == 12)
                picture_byte(&f, 3);
            if (i % 24 < 3 || i % 24 >= 12)
                picture_byte(&f, rgb[i + 2 - 2 * (i % 3)]);
        }
        break;
    case PICTURE_TGA_PALETTE:
        picture_tga_header(&f, 256, 1, 8);
        for (i = 0; i < 3 * 256; i++)
            picture_byte(&f, (unsigned)i / 3);
        for (i = 0; i < all; i++)
            picture_byte(&f, rgb[3 * i]);
        break;
    default:
        snprintf(head, sizeof head,
                 format == PICTURE_PPM ? "P6\n# test\n%d %d\n255\n" : "P5 %d %d 255\n", WIDE, HIGH);
        picture_text(&f, head, strlen(head));
        for (i = 0; i < 3 * all; i++) {
            if (format == PICTURE_PPM || i % 3 == 0)
                picture_byte(&f, rgb[i]);
        }
    }
    return f;
}
#endif
