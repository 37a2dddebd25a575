/* SPDX-License-Identifier: MIT-0

   fuzz_deploy: damaged files into the readers of examples/deploy: .npy, .nnet, VNN-LIB, safetensors with PyTorch's names,
   solutions of solvers.

       gcc -O1 -g -I.. -fsanitize=address,undefined fuzz_deploy.c -lm -o fuzz_deploy && ./fuzz_deploy [ROUNDS]
       clang -O1 -g -I.. -fsanitize=fuzzer,address,undefined -DFUZZ_LIBFUZZER fuzz_deploy.c -lm -o fuzz_deploy && ./fuzz_deploy

   The first byte chooses the reader. What is refused is refused in one line and changes nothing; what is accepted can be
   written, and what
   was written can be read. */
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "lgelu.h"
#include "../examples/deploy/attack.c"
#include "../examples/deploy/bounds.c"
#include "../examples/deploy/mip.c"
#include "../examples/deploy/nnet.c"
#include "../examples/deploy/npy.c"
#include "../examples/deploy/torch_file.c"
#include "../examples/deploy/vnnlib.c"
#include <stdio.h>
#include <stdlib.h>

enum { NODES = 8, BLOCK = 1 << 18, ROOM = 1 << 14, READERS = 5 };
typedef struct { unsigned char byte[ROOM]; size_t size; } file;

static lgelu_node nodes[NODES];
static lgelu_net net;
static union { unsigned char byte[BLOCK]; double align; } memory;
static unsigned char *const block = memory.byte;
static float before[64];
static int output;

static int put(void *user, const void *data, size_t size)
{
    file *f = (file *)user;
    if (size > ROOM - f->size) return 1;
    memcpy(f->byte + f->size, data, size);
    f->size += size;
    return 0;
}
static void make(void)
{
    static const size_t outputs[2] = { 3, 2 };
    lgelu_net_begin(&net, nodes, NODES);
    output = lgelu_mlp(&net, lgelu_input(&net, "x", 1, 1, 2), outputs, 2, LGELU_GATE_RELU, 1);
    if (lgelu_net_make(&net, block, BLOCK, 1, LGELU_INFER, 1)) { fprintf(stderr, "%s\n", net.message); abort(); }
}
static void one_line(const char *message)
{
    if (!message[0] || strchr(message, '\n') || strlen(message) > 159) abort();
}
static int read_npy(const uint8_t *p, size_t n)
{
    npy a;
    size_t i;
    if (npy_read(&a, p, n)) { one_line(a.message); return 0; }
    for (i = 0; i < a.count && i < 1000; i++) (void)npy_at(&a, a.count - 1 - i);
    if (a.count <= 4096) { float *y = (float *)malloc((a.count + 1) * sizeof *y); if (!y) abort(); npy_floats(y, &a); free(y); }
    return 1;
}
static int read_nnet(const uint8_t *p, size_t n)
{
    nnet a;
    if (nnet_read(&a, p, n)) { one_line(a.message); return 0; }
    make();
    memcpy(before, net.w, net.parameters * sizeof *before);
    if (nnet_fill(&a, &net, output)) { one_line(net.message);
        if (memcmp(before, net.w, net.parameters * sizeof *before)) abort(); }
    nnet_free(&a);
    return 1;
}
static int read_vnnlib(const uint8_t *p, size_t n)
{
    static file again;
    vnnlib a, b;
    size_t i;
    if (vnnlib_read(&a, p, n)) { one_line(a.message); return 0; }
    for (i = 0; i < a.inputs; i++) if (!(a.low[i] <= a.high[i])) abort();
    if (a.clause[a.clauses] != a.terms) abort();
    again.size = 0;
    if (!vnnlib_write(&a, NULL, put, &again)) {
        if (vnnlib_read(&b, again.byte, again.size)) abort();
        if (b.inputs != a.inputs || b.clauses != a.clauses || b.terms != a.terms) abort();
        vnnlib_free(&b);
    }
    vnnlib_free(&a);
    return 1;
}
static int read_torch(const uint8_t *p, size_t n)
{
    torch_names how;
    memset(&how, 0, sizeof how);
    how.loose = n & 1;
    make();
    memcpy(before, net.w, net.parameters * sizeof *before);
    if (!torch_read(&net, &how, p, n)) return 1;
    one_line(net.message);
    if (memcmp(before, net.w, net.parameters * sizeof *before) || net.status) abort();
    return 0;
}
static int read_solution(const uint8_t *p, size_t n)
{
    double x[3];
    return mip_read(x, 3, p, n) == MIP_FOUND;
}
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    unsigned char *exactly;
    int accepted = 0;
    if (!n) return 0;
    exactly = (unsigned char *)malloc(n > 1 ? n - 1 : 1);               /* no spare byte: a sanitizer sees each step beyond */
    if (!exactly) return 0;
    if (n > 1) memcpy(exactly, p + 1, n - 1);
    switch (p[0] % READERS) {
    case 0:  accepted = read_npy(exactly, n - 1); break;
    case 1:  accepted = read_nnet(exactly, n - 1); break;
    case 2:  accepted = read_vnnlib(exactly, n - 1); break;
    case 3:  accepted = read_torch(exactly, n - 1); break;
    default: accepted = read_solution(exactly, n - 1); break;
    }
    free(exactly);
    return accepted;
}

#ifndef FUZZ_LIBFUZZER
static uint32_t draw(uint64_t round, uint32_t *k) { return lgelu_random(18, round, (*k)++); }

static size_t damage(uint8_t *p, size_t n, uint64_t round, uint32_t *k)
{
    static const char edge[] = "\"'\\{}[]():,;/09.-e \n\x7f\xff";
    const size_t place = 1 + draw(round, k) % (n - 1);
    size_t length = 1 + draw(round, k) % 16;
    if (length > n - place) length = n - place;
    switch (draw(round, k) % 7) {
    case 0: p[place] ^= (uint8_t)(1u << draw(round, k) % 8); break;
    case 1: p[place] = (uint8_t)edge[draw(round, k) % (sizeof edge - 1)]; break;
    case 2: p[place] = (uint8_t)('0' + draw(round, k) % 10); break;
    case 3: p[place] = (uint8_t)draw(round, k); break;
    case 4: return draw(round, k) % 4 ? n : place + 1;               /* cut off */
    case 5: memmove(p + place, p + place + length, n - place - length); return n - length > 2 ? n - length : n;
    default:                                                        /* a piece twice */
        if (n + length > ROOM) return n;
        memmove(p + place + length, p + place, n - place);
        return n + length;
    }
    return n;
}
int main(int argc, char **argv)
{
    static file whole[READERS], input;
    static const char cbc[] = "Stopped on iterations - objective value -0.25\n      0 t   -0.25   0\n      1 x0   0.14   "
        "-6.9e-18\n**    2 x1  -0.02   0\n";
    static const size_t shape[2] = { 2, 3 };
    static const float numbers[6] = { 1, 2, 3, 4, 5, 6 };
    const long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 200000;
    long accepted[READERS] = { 0 }, tried[READERS] = { 0 };
    torch_names how;
    vnnlib p;
    int k, good = 1;
    memset(&how, 0, sizeof how);
    make();
    for (k = 0; k < READERS; k++) { whole[k].byte[0] = (unsigned char)k; whole[k].size = 1; }
    if (npy_write(NPY_F32, numbers, shape, 2, put, whole) || nnet_write(&net, output, NULL, put, whole + 1)
        || vnnlib_box(&p, 3, 3) || vnnlib_robust(&p, 1)
        || vnnlib_write(&p, NULL, put, whole + 2) || torch_write(&net, &how, put, whole + 3)
            || put(whole + 4, cbc, sizeof cbc - 1)) abort();
    for (k = 0; k < READERS; k++) if (!LLVMFuzzerTestOneInput(whole[k].byte, whole[k].size)) {
        printf("FAIL fuzz_deploy: sound file %d is refused\n", k); return 1; }
    for (long round = 0; round < rounds; round++) {
        uint32_t next = 0, hits = 1 + draw((uint64_t)round, &next) % 3;
        k = (int)(draw((uint64_t)round, &next) % READERS);
        input = whole[k];
        while (hits--) input.size = damage(input.byte, input.size, (uint64_t)round, &next);
        tried[k]++;
        accepted[k] += LLVMFuzzerTestOneInput(input.byte, input.size);
    }
    /* or the damage would test nothing */
    for (k = 0; k < READERS; k++) good &= accepted[k] > tried[k] / 200 && accepted[k] < tried[k];
    printf("%s fuzz_deploy%s %ld inputs, accepted %ld %ld %ld %ld %ld\n", good ? "ok" : "FAIL", good ? "" : ":", rounds,
           accepted[0], accepted[1], accepted[2], accepted[3], accepted[4]);
    vnnlib_free(&p);
    return !good;
}
#endif
