/* SPDX-License-Identifier: MIT-0

   fuzz_onnx: damaged ONNX files into onnx_open, onnx_build and onnx_fill.

       gcc -O1 -g -I.. -fsanitize=address,undefined fuzz_onnx.c lgelu.o -lm -o fuzz_onnx && ./fuzz_onnx [ROUNDS]
       clang -O1 -g -I.. -fsanitize=fuzzer,address,undefined -DFUZZ_LIBFUZZER fuzz_onnx.c lgelu.o -lm -o fuzz_onnx

   What is refused must say why; what is accepted must become a network that runs, can be written, and is then read and written
   again, and again, the last two files being of the same length. Damage starts from sound files: networks of each kind of layer.
   The library itself is linked as an object without sanitizers, with which it takes minutes to compile; its memory is as long as
   it asks for, not a byte more. */
#define LGELU_TRAINER
#include "lgelu.h"
#include "../examples/deploy/onnx_out.c"
#include "../examples/deploy/onnx_in.c"
#include <stdio.h>
#include <stdlib.h>

enum { SEEDS = 6, NODES = 64, BLOCK = 1 << 24, FILE_ROOM = 1 << 16 };
typedef struct { unsigned char byte[FILE_ROOM]; size_t size; } file;
static file sound[SEEDS];
static unsigned char block[BLOCK];
static char reason[160];

static int keep(void *user, const void *data, size_t size)
{
    file *f = (file *)user;
    if (size > FILE_ROOM - f->size) return 1;
    memcpy(f->byte + f->size, data, size);
    f->size += size;
    return 0;
}
static void seeds(void)
{
    static lgelu_node nodes[NODES];
    static const size_t outputs[2] = { 3, 2 };
    lgelu_transformer shape = { 1, 2, 4, 6, LGELU_GATE_LAMBDA, 2, 0, 0 };
    lgelu_net net;
    int k, x;
    for (k = 0; k < SEEDS; k++) {
        onnx_options o = { -1, 0, NULL, ONNX_CHANNELS_FIRST, NULL };
        lgelu_net_begin(&net, nodes, NODES);
        if (k == 3) { x = lgelu_tokens(&net, "tokens", 3, 5); lgelu_gpt(&net, x, &shape); }
        else {
            x = k == 0 ? lgelu_input(&net, "x", 1, 1, 4) : lgelu_input(&net, "x", 4, 4, 2);
            if (k == 0) lgelu_mlp(&net, x, outputs, 2, LGELU_GATE_LAMBDA, 1.5f);
            if (k == 1) lgelu_resnet(&net, x, 2, 2, 1, 3, LGELU_GATE_GELU, 1);
            if (k == 2) lgelu_vit(&net, x, &shape, 2, 0, 3);
            if (k == 4)
                x = lgelu_conv(&net, "c", lgelu_gate_channels(&net, "g", lgelu_average_pool(&net, "a", x, 2, 1, 1), 2), 2, 3, 1,
                    1, 2, 1);
            if (k == 4) lgelu_linear(&net, "fc", lgelu_flatten(&net, "f", lgelu_max_pool(&net, "m", x, 2, 2, 0)), 2);
            if (k == 5)
                lgelu_mlp(&net, lgelu_take(&net, "t", lgelu_position(&net, "p", x), 3, 4), outputs, 2, LGELU_GATE_TANH, 1);
        }
        if (lgelu_net_make(&net, block, BLOCK, 1, LGELU_INFER, 1)) abort();
        sound[k].size = 0;
        if (onnx_save(&net, &o, block + BLOCK - NODES, keep, sound + k, reason)) abort();
    }
}
/* 0: refused; 1: a network that was written to `to` */
static int through(const unsigned char *p, size_t n, file *to)
{
    size_t room_ = onnx_open_bytes(p, n, reason), need = 0, size_;
    void *work = room_ ? malloc(room_) : NULL, *memory = NULL;
    onnx_model *m = work ? onnx_open(p, n, work, reason) : NULL;
    lgelu_node *nodes = m ? (lgelu_node *)calloc((size_t)onnx_nodes(m) + 1, sizeof *nodes) : NULL;
    int in_, out = -1;
    lgelu_net net;
    if (!m && (!*reason || !memchr(reason, 0, sizeof reason))) abort();
    if (nodes) {
        onnx_options o = { -1, 0, NULL, ONNX_CHANNELS_FIRST, NULL };
        lgelu_net_begin(&net, nodes, onnx_nodes(m));
        out = onnx_build(m, &net, 0, &in_);
        if (out >= 0) need = lgelu_net_bytes(&net, 1, LGELU_INFER);
        if (out >= 0 && need && need < BLOCK) memory = malloc(need);
        if (memory && !lgelu_net_make(&net, memory, need, 1, LGELU_INFER, 1)) {
            if (onnx_fill(m, &net)) abort();                               /* all of it was looked at */
            size_ = net.nodes[in_].shape[0] * net.nodes[in_].shape[1] * net.nodes[in_].shape[2];
            memset(block, 0, BLOCK);
            if (net.nodes[in_].op == LGELU_OP_TOKENS || size_ < BLOCK / 4) {
                lgelu_net_bind(&net, in_, block);
                for (int i = 0; i < net.count; i++)
                    if (net.nodes[i].op <= LGELU_OP_TOKENS && i != in_) lgelu_net_bind(&net, i, block);
                lgelu_net_forward(&net, 1);
                /* weights may be so large that nothing finite is left */
                net.status = LGELU_OK;
            }
            o.node = out;
            o.input = onnx_input(m);
            o.output = onnx_output(m);
            to->size = 0;
            if (onnx_save(&net, &o, block, keep, to, reason)) {
                if (!*reason) abort();
                out = -1;
            }
        } else out = -1;
    }
    free(memory);
    free(nodes);
    free(work);
    return out >= 0;
}
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static file first, second;
    unsigned char *exactly = (unsigned char *)malloc(n ? n : 1);        /* no spare byte: a sanitizer sees each step beyond */
    int good;
    if (!exactly) return 0;
    if (n) memcpy(exactly, p, n);
    good = through(exactly, n, &first);
    free(exactly);
    if (!good) return 0;
    if (!through(first.byte, first.size, &second)) { fprintf(stderr, "what was written is refused: %s\n", reason); abort(); }
    if (!through(second.byte, second.size, &first)) {
        fprintf(stderr, "what was written again is refused: %s\n", reason);
        abort();
    }
    if (first.size != second.size) { fprintf(stderr, "%zu bytes, then %zu\n", first.size, second.size); abort(); }
    return 1;
}

static uint32_t draw(uint64_t round, uint32_t *k) { return lgelu_random(17, round, (*k)++); }
static size_t damage(uint8_t *p, size_t n, size_t most, uint64_t round, uint32_t *k)
{
    size_t place = draw(round, k) % n, from = draw(round, k) % n, length = 1 + draw(round, k) % 16;
    if (length > n - place) length = n - place;
    if (length > n - from) length = n - from;
    switch (draw(round, k) % 8) {
    case 0: p[place] ^= (uint8_t)(1u << draw(round, k) % 8); break;
    case 1: p[place] = (uint8_t)(draw(round, k) % 24); break;
    case 2: p[place]++; break;
    case 3: p[place] = (uint8_t)draw(round, k); break;
    case 4: return place > 16 ? place : n;                          /* cut off */
    case 5: memmove(p + place, p + from, length); break;            /* one piece over another */
    case 6: memmove(p + place, p + place + length, n - place - length); return n - length > 16 ? n - length : n;
    default:                                                        /* a piece twice */
        if (n + length > most) return n;
        memmove(p + place + length, p + place, n - place);
        return n + length;
    }
    return n;
}
#ifdef FUZZ_LIBFUZZER
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned seed);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned seed)
{
    uint32_t k = 0, hits = 1 + draw(seed, &k) % 3;
    if (!sound[0].size) seeds();
    if (n < 64 || draw(seed, &k) % 64 == 0) {
        const file *f = sound + draw(seed, &k) % SEEDS;
        if (f->size > most) return n;
        memcpy(data, f->byte, f->size);
        n = f->size;
    }
    if (draw(seed, &k) % 4 == 0) return LLVMFuzzerMutate(data, n, most);
    while (hits--) n = damage(data, n, most, seed, &k);
    return n;
}
#else
int main(int argc, char **argv)
{
    static file input;
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 60000, accepted = 0, round;
    int k, good;
    seeds();
    for (k = 0; k < SEEDS; k++)
        if (!LLVMFuzzerTestOneInput(sound[k].byte, sound[k].size)) {
            printf("FAIL fuzz_onnx: sound file %d is refused: %s\n", k, reason);
            return 1;
        }
    for (round = 0; round < rounds; round++) {
        uint32_t i = 0, hits = 1 + draw((uint64_t)round, &i) % 3;
        input = sound[round % SEEDS];
        while (hits--) input.size = damage(input.byte, input.size, FILE_ROOM, (uint64_t)round, &i);
        accepted += LLVMFuzzerTestOneInput(input.byte, input.size);
    }
    good = accepted > rounds / 100 && accepted < rounds;            /* damage so strong that all is refused would test nothing */
    printf("%s fuzz_onnx%s %ld inputs, %ld accepted\n", good ? "ok" : "FAIL", good ? "" : ":", rounds, accepted);
    return !good;
}
#endif
