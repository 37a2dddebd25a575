/* SPDX-License-Identifier: MIT-0

   fuzz_exchange: damaged safetensors files into lgelu_parts_load and lgelu_metadata.

       gcc -O1 -g -I.. -fsanitize=address,undefined fuzz_exchange.c -lm -o fuzz_exchange && ./fuzz_exchange [ROUNDS]
       clang -O1 -g -I.. -fsanitize=fuzzer,address,undefined -DFUZZ_LIBFUZZER fuzz_exchange.c -lm -o fuzz_exchange && ./fuzz_exchange

   What is refused must leave both networks as they were; what is accepted must be saved, loaded and saved again as the same bytes. */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "lgelu.h"
#include <stdio.h>
#include <stdlib.h>

enum { NODES = 8, BLOCK = 1 << 18, ROOM = 1 << 14 };
typedef struct { unsigned char byte[ROOM]; size_t size; } file;

static lgelu_node node[2][NODES];
static lgelu_net net[2];
static unsigned char block[2][BLOCK], before[2][BLOCK];
static const lgelu_part part[2] = { { "", &net[0] }, { "branch/", &net[1] } };
static const float data[2] = { 1, 2 };
static const int32_t label[1] = { 1 };
static const char *const metadata[2][2] = { { "option.lr", "0.001" }, { "note", "\"\\\n\x01 λ" } };

static int put(void *user, const void *data, size_t size)
{
    file *f = (file *)user;
    if (size > ROOM - f->size) return 1;
    memcpy(f->byte + f->size, data, size);
    f->size += size;
    return 0;
}
static void make(int k, uint64_t seed)
{
    static const size_t outputs[2] = { 3, 2 };
    memset(block[k], 0, BLOCK);
    lgelu_net_begin(net + k, node[k], NODES);
    int x = lgelu_input(net + k, "x", 1, 1, 2), logits = lgelu_mlp(net + k, x, outputs, 2, LGELU_GATE_LAMBDA, 1.7f);
    int y = lgelu_labels(net + k, "y", 1, 2);
    lgelu_cross_entropy(net + k, "loss", logits, y);
    if (lgelu_net_make(net + k, block[k], BLOCK, 1, LGELU_TRAIN, seed)) abort();
    lgelu_net_bind(net + k, x, data);
    lgelu_net_bind(net + k, y, label);
}
/* all but the scratch memory, in which loading sorts: weights, moments, λ's below it, values above */
static int as_before(int k)
{
    const size_t from = (size_t)((unsigned char *)net[k].pack - block[k]), to = from + net[k].pack_bytes;
    return !memcmp(before[k], block[k], from) && !memcmp(before[k] + to, block[k] + to, BLOCK - to);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static file first, second;
    char text[40];
    make(0, 1);
    make(1, 2);
    for (int k = 0; k < 2; k++) if (lgelu_net_forward(net + k, 1)) abort();       /* a forward that waits for its backward */
    for (int k = 0; k < 2; k++) memcpy(before[k], block[k], BLOCK);
    unsigned char *exactly = (unsigned char *)malloc(n ? n : 1);        /* no spare byte: a sanitizer sees each step beyond */
    if (!exactly) return 0;
    if (n) memcpy(exactly, p, n);
    for (int k = 0; k < 2; k++) if (lgelu_metadata(exactly, n, metadata[k][0], text, 1 + n % sizeof text) && !memchr(text, 0, sizeof text)) abort();
    lgelu_status status = lgelu_parts_load(part, 2, exactly, n);
    free(exactly);
    if (status) {
        for (int k = 0; k < 2; k++) if (net[k].status || net[k].step || !net[k].pending || !as_before(k)) abort();
        if (strncmp(net[0].message, "safetensors: ", 13)) abort();
        return 0;
    }
    first.size = second.size = 0;
    if (lgelu_parts_save(part, 2, metadata, 2, put, &first)) abort();
    make(0, 3);
    make(1, 4);
    if (lgelu_parts_load(part, 2, first.byte, first.size) || lgelu_parts_save(part, 2, metadata, 2, put, &second)) abort();
    if (first.size != second.size || memcmp(first.byte, second.byte, first.size)) abort();
    return 1;
}

#ifndef FUZZ_LIBFUZZER
static uint32_t draw(uint64_t round, uint32_t *k) { return lgelu_random(17, round, (*k)++); }

static size_t damage(uint8_t *p, size_t n, uint64_t round, uint32_t *k)
{
    static const char edge[] = "\"\\{}[]:,09. \x7f\x80\xc0\xff";
    size_t header = 8 + ((size_t)p[0] | (size_t)p[1] << 8), place = draw(round, k) % n, length = 1 + draw(round, k) % 16;
    if (header < n && draw(round, k) % 4) place = draw(round, k) % header;           /* most of the damage goes into the header */
    if (length > n - place) length = n - place;
    switch (draw(round, k) % 7) {
    case 0: p[place] ^= (uint8_t)(1u << draw(round, k) % 8); break;
    case 1: p[place] = (uint8_t)edge[draw(round, k) % (sizeof edge - 1)]; break;
    case 2: p[place] = (uint8_t)('0' + draw(round, k) % 10); break;
    case 3: p[place] = (uint8_t)draw(round, k); break;
    case 4: return place > 8 ? place : n;                           /* cut off */
    case 5: memmove(p + place, p + place + length, n - place - length); return n - length > 8 ? n - length : n;
    default:                                                        /* a piece twice */
        if (n + length > ROOM) return n;
        memmove(p + place + length, p + place, n - place);
        return n + length;
    }
    return n;
}

int main(int argc, char **argv)
{
    static file whole, input;
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 100000, accepted = 0;
    make(0, 5);
    make(1, 6);
    net[0].step = 123456;
    lgelu_net_relu(net + 1);
    if (lgelu_parts_save(part, 2, metadata, 2, put, &whole) || !LLVMFuzzerTestOneInput(whole.byte, whole.size)) {
        printf("FAIL fuzz_exchange: the sound file is refused: %s\n", net[0].message);
        return 1;
    }
    for (long round = 0; round < rounds; round++) {
        uint32_t k = 0, hits = 1 + draw((uint64_t)round, &k) % 3;
        input = whole;
        while (hits--) {
            size_t size = damage(input.byte, input.size, (uint64_t)round, &k);
            if (size != input.size && draw((uint64_t)round, &k) % 2) {       /* half of the new lengths are told in front */
                uint64_t header = (input.byte[0] | (uint64_t)input.byte[1] << 8) + size - input.size;
                input.byte[0] = (uint8_t)(header & 255);
                input.byte[1] = (uint8_t)(header >> 8 & 255);
            }
            input.size = size;
        }
        accepted += LLVMFuzzerTestOneInput(input.byte, input.size);
    }
    int good = accepted > rounds / 100 && accepted < rounds;         /* damage so strong that all is refused would test nothing */
    printf("%s fuzz_exchange%s %ld inputs, %ld accepted\n", good ? "ok" : "FAIL", good ? "" : ":", rounds, accepted);
    return !good;
}
#endif
