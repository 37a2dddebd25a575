/* SPDX-License-Identifier: MIT-0

   fuzz_exchange: damaged checkpoints into lgelu_net_load, from memory. A file is taken whole or refused with a message, and
   then the network is as it was.

       clang -O1 -g -I.. -fsanitize=fuzzer,address,undefined -DFUZZ_LIBFUZZER fuzz_exchange.c -lm -o fuzz_exchange && ./fuzz_exchange
       gcc -O1 -g -I.. -fsanitize=address,undefined fuzz_exchange.c -lm -o fuzz_exchange && ./fuzz_exchange [ROUNDS]

   An input is a number of the damages to make to a good checkpoint, each a place and what to put there, or a whole file. */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "lgelu.h"
#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 1 << 14 };
static lgelu_node nodes[16];
static lgelu_net net;
static unsigned char *good;             /* a checkpoint of it */
static size_t good_size;
static int accepted;

static int append(void *user, const void *data, size_t size)
{
    size_t *n = (size_t *)user;
    if (size > ROOM - *n) return 1;
    memcpy(good + *n, data, size);
    *n += size;
    return 0;
}
static void set_up(void)
{
    static const size_t sizes[] = { 5, 4, 3 };
    static const char *const metadata[][2] = { { "data", "a \"name\" with \\ and \n" } };
    size_t bytes;
    void *memory;
    if (good) return;
    lgelu_net_begin(&net, nodes, 16);
    lgelu_gate_channels(&net, "last", lgelu_mlp(&net, lgelu_input(&net, "x", 1, 1, 6), sizes, 3, LGELU_GATE_LAMBDA, 2), 3);
    bytes = lgelu_net_bytes(&net, 2, LGELU_TRAIN);
    memory = malloc(bytes);
    good = (unsigned char *)malloc(ROOM);
    if (!memory || !good || lgelu_net_make(&net, memory, bytes, 2, LGELU_TRAIN, 3) || lgelu_net_save(&net, metadata, 1, append, &good_size)) abort();
}

/* everything that a load may change */
static uint64_t state_of(const lgelu_net *n)
{
    const float *part[6];
    size_t size[6], i, k;
    uint64_t hash = 14695981039346656037u;
    part[0] = n->w; part[1] = n->m; part[2] = n->v; part[3] = n->lambda; part[4] = n->s; part[5] = n->s_m;
    for (k = 0; k < 6; k++) {
        size[k] = (k < 3 ? n->parameters : (size_t)n->hardnesses) * sizeof(float);
        for (i = 0; i < size[k]; i++) hash = (hash ^ ((const unsigned char *)part[k])[i]) * 1099511628211u;
    }
    for (i = 0; i < (size_t)n->count; i++) hash = (hash ^ (uint64_t)n->nodes[i].gate) * 1099511628211u;
    return hash ^ (uint64_t)n->step;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    unsigned char *file;
    size_t size = n, damages = 0, i;
    uint64_t before;
    char text[16];
    lgelu_status status;
    set_up();
    if (n && p[0] < 32) {                                   /* byte 0: how many; then place (2), action (1), what (1) */
        damages = p[0];
        size = good_size;
    }
    file = (unsigned char *)malloc(size ? size : 1);        /* no spare byte: a sanitizer sees each step beyond */
    if (!file) return 0;
    if (!(n && p[0] < 32)) { if (n) memcpy(file, p, n); }
    else {
        memcpy(file, good, size);
        for (i = 1; damages && i + 4 <= n && size; damages--, i += 4) {
            size_t place = (size_t)(p[i] << 8 | p[i + 1]) % size, length = p[i + 3] % 16u;
            if (length > size - place) length = size - place;
            switch (p[i + 2] % 6) {
            case 0: file[place] = p[i + 3]; break;
            case 1: file[place] ^= (unsigned char)(1u << p[i + 3] % 8); break;
            case 2: memset(file + place, "0123456789\",:{}[]\\ -e"[p[i + 3] % 21], length); break;
            case 3: size = place; break;
            case 4: memmove(file + place, file + place + length, size - place - length); size -= length; break;
            default: memmove(file + place, file + (place / 2), length);     /* a piece from elsewhere */
            }
        }
    }
    {                                                       /* cut to size, so that reading on is seen */
        unsigned char *exact = (unsigned char *)malloc(size ? size : 1);
        if (!exact) abort();
        memcpy(exact, file, size);
        free(file);
        file = exact;
    }
    before = state_of(&net);
    status = lgelu_net_load(&net, file, size);
    if (net.status) abort();                                /* a refused file does not stick */
    if (status && (!*net.message || state_of(&net) != before)) abort();
    if (!status) for (i = 0; i < (size_t)net.hardnesses; i++) if (!(net.lambda[i] >= 1)) abort();
    accepted += !status;
    lgelu_metadata(file, size, "data", text, sizeof text);
    lgelu_metadata(file, size, "step", text, 1);
    free(file);
    if (lgelu_net_load(&net, good, good_size)) abort();     /* the next input meets the same network */
    return 0;
}

#ifndef FUZZ_LIBFUZZER
int main(int count, char **arg)
{
    long rounds = count > 1 ? atol(arg[1]) : 100000, round, sum = 0;
    for (round = 0; round < rounds; round++) {
        uint8_t input[64];
        size_t i;
        for (i = 0; i < sizeof input; i++) input[i] = (uint8_t)lgelu_random(1, (uint64_t)round, i);
        input[0] = (uint8_t)(round % 4);
        for (i = 1; i < 13; i += 4) if (round % 5) input[i] &= 3;       /* most of it into the header */
        LLVMFuzzerTestOneInput(input, sizeof input);
    }
    sum = accepted;
    /* damage so strong that all is refused, or none, would test nothing */
    printf("%s fuzz_exchange%s %ld inputs, %ld accepted\n", sum > rounds / 20 && sum < rounds ? "ok" : "FAIL", sum > rounds / 20 && sum < rounds ? "" : ":", rounds, sum);
    return !(sum > rounds / 20 && sum < rounds);
}
#endif
