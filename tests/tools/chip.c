/* SPDX-License-Identifier: MIT-0
   chip.c: runs the network of a C file (onnx_c.h) on bare metal: ARM Cortex-M with semihosting, or
   RISC-V on qemu's board virt. Prints the hash of all outputs and the instructions of one
   inference. chip_net.h says what the network is called and holds the inputs; qemu runs with
   -icount shift=0, an instruction a nanosecond, by which the timers count instructions.

   With -DCHIP_SCORE (Cortex-M) it runs the network on the images of the file CHIP_SCORE instead,
   records of a class and the pixels, which semihosting reads from the machine that emulates, and
   prints how many classes it finds and the hash of all outputs.

   -DCHIP_HOSTED makes a program for this machine of either. Without CHIP_SCORE it prints, in place
   of the instructions, how many outputs have not the bits of the expected ones; for integers, the
   largest distance from them in 255ths of the largest output. */
#include "chip_net.h"
#include <string.h>
#ifdef CHIP_HOSTED
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#endif

enum { OUTPUTS = CHIP(outputs), INPUTS = CHIP(inputs) };
#ifdef CHIP_FLOAT
static float x[INPUTS];
#endif
#ifndef CHIP_OUTPUT
#define CHIP_OUTPUT int32_t
#endif
static CHIP_OUTPUT y[OUTPUTS];
__attribute__((noinline)) void chip_main(void);

#ifdef CHIP_HOSTED
static void print(const char *text) { fputs(text, stdout); }

static void end(void) { exit(fflush(stdout) != 0); }

#ifdef CHIP_SCORE
static FILE *images;

static void open_images(const char *path)
{
    images = fopen(path, "rb");
    if (!images)
        exit(1);
}

/* Reads so many bytes and returns 1, or returns 0 at the end. */
static int read_images(uint8_t *bytes, size_t count) { return fread(bytes, count, 1, images) == 1; }
#else
static uint32_t counter(void) { return 0; }

static uint32_t counted(uint32_t from, uint32_t to) { return to - from; }
#endif

int main(void)
{
    chip_main();
    return 0;
}
#elif defined(__riscv)
/* the board's serial line, and the device that ends the emulator */
static void print(const char *text)
{
    while (*text)
        *(volatile uint8_t *)0x10000000 = (uint8_t)*text++;
}

static void end(void)
{
    *(volatile uint32_t *)0x100000 = 0x5555;
    for (;;) {
    }
}

static uint32_t counter(void)
{
    uint32_t n;
    __asm__ volatile("rdinstret %0" : "=r"(n));
    return n;
}

static uint32_t counted(uint32_t from, uint32_t to) { return to - from; }

__attribute__((naked, used, section(".start"))) void _start(void)
{
    __asm__ volatile("la sp, chip_stack\n j chip_main");
}
#else
/* Lets the program use the float unit before the first function that may do so. */
__attribute__((noinline, used)) static void reset(void)
{
    *(volatile uint32_t *)0xE000ED88 |= 0xF << 20;
    __asm__ volatile("dsb\n isb" ::: "memory");
    chip_main();
}

extern uint32_t chip_stack;
__attribute__((used, section(".start"))) static void (*const vectors[2])(void) = {
    (void (*)(void)) & chip_stack, reset
};

static uint32_t semihosting(uint32_t what, const void *with)
{
    register uint32_t r0 __asm__("r0") = what;
    register const void *r1 __asm__("r1") = with;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static void print(const char *text) { semihosting(4, text); }

#ifdef CHIP_SCORE
static uint32_t images;

/* SYS_OPEN, mode 1: to read bytes; a file that is not there reads as an empty one */
static void open_images(const char *path)
{
    const uint32_t block[3] = { (uint32_t)path, 1, (uint32_t)strlen(path) };
    images = semihosting(1, block);
}

/* Reads so many bytes and returns 1, or returns 0 at the end: SYS_READ returns the bytes that are
   missing. */
static int read_images(uint8_t *bytes, size_t count)
{
    const uint32_t block[3] = { images, (uint32_t)bytes, (uint32_t)count };
    return !semihosting(6, block);
}
#endif

static void end(void)
{
    semihosting(0x18, (const void *)0x20026);
    for (;;) {
    }
}

#ifdef CHIP_SCORE
/* nothing is timed */
#elif defined(CHIP_NRF51)
/* timer 0 of an nRF51, 32 bits at 16 MHz */
static uint32_t counter(void)
{
    volatile uint32_t *const timer = (volatile uint32_t *)0x40008000;
    if (timer[0x508 / 4] != 3) {
        timer[0x508 / 4] = 3;
        timer[0x510 / 4] = 0;
        timer[0] = 1;
    }
    timer[0x40 / 4] = 1;
    return timer[0x540 / 4];
}

static uint32_t counted(uint32_t from, uint32_t to) { return (to - from) * 125 / 2; }
#else
/* SysTick counts down 24 bits at 25 MHz, the clock of the boards MPS2 */
static uint32_t counter(void)
{
    volatile uint32_t *const tick = (volatile uint32_t *)0xE000E010;
    if (!tick[0]) {
        tick[1] = 0xFFFFFF;
        tick[2] = 0;
        tick[0] = 5;
    }
    return tick[2];
}

static uint32_t counted(uint32_t from, uint32_t to) { return ((from - to) & 0xFFFFFF) * 40; }
#endif
#endif

static void print_number(uint32_t n, uint32_t base)
{
    char text[12], *p = text + sizeof text - 1;
    int k;
    *p = 0;
    for (k = 0; k < (base == 16 ? 8 : 1) || n; k++) {
        *--p = "0123456789abcdef"[n % base];
        n /= base;
    }
    print(p);
}

/* The hash continued with the bytes of the outputs, each as four, the lowest first. */
static uint64_t hash_outputs(uint64_t hash)
{
    size_t k, b;
    for (k = 0; k < OUTPUTS; k++) {
        uint32_t bits = 0;
        memcpy(&bits, y + k, sizeof *y);
        for (b = 0; b < 4; b++)
            hash = (hash ^ (bits >> 8 * b & 255)) * 1099511628211u;
    }
    return hash;
}

static void print_hash(uint64_t hash)
{
    print("hash ");
    print_number((uint32_t)(hash >> 32), 16);
    print_number((uint32_t)hash, 16);
}

static void clear_values(void)
{
#ifndef CHIP_HOSTED
    extern uint8_t chip_zeros, chip_zeros_end;
    uint8_t *zeros = &chip_zeros;
    while (zeros != &chip_zeros_end)
        *zeros++ = 0;
#endif
}

#if defined(CHIP_HOSTED) && !defined(CHIP_SCORE)
static double apart;

/* Compares the outputs of image i with those that are expected. */
static void compare(size_t i)
{
    const float *e = expected + i * OUTPUTS;
    size_t k;
#ifdef CHIP_FLOAT
    for (k = 0; k < OUTPUTS; k++)
        apart += memcmp(e + k, y + k, sizeof *y) != 0;
#else
    double most = 0;
    for (k = 0; k < OUTPUTS; k++)
        most = fmax(most, fabs((double)e[k]));
    for (k = 0; k < OUTPUTS; k++)
        apart = fmax(apart, fabs((double)y[k] * (double)CHIP(Y_SCALE) - (double)e[k]) * 255 / most);
#endif
}
#endif

#ifdef CHIP_SCORE
void chip_main(void)
{
    static uint8_t record[1 + INPUTS];
    static float pixels[INPUTS];
    uint64_t hash = 14695981039346656037u;
    uint32_t count = 0, right = 0;
    size_t k;
    clear_values();
    open_images(CHIP_SCORE);
    while (read_images(record, sizeof record)) {
        size_t best = 0;
        for (k = 0; k < INPUTS; k++)
            pixels[k] = (float)record[1 + k] / 255.0f;
        CHIP_RUN(y, pixels);
        for (k = 1; k < OUTPUTS; k++) {
            if (y[k] > y[best])
                best = k;
        }
        count++;
        right += best == record[0];
        hash = hash_outputs(hash);
    }
    print_number(right, 10);
    print(" of ");
    print_number(count, 10);
    print(", ");
    print_hash(hash);
    print("\n");
    end();
}
#else
void chip_main(void)
{
    uint64_t hash = 14695981039346656037u;
    uint32_t start, most = 0;
    size_t i;
#ifdef CHIP_FLOAT
    size_t k;
#endif
    clear_values();
    counter();
    for (i = 0; i < CHIP_IMAGES; i++) {
        uint32_t n;
#ifdef CHIP_FLOAT
        for (k = 0; k < INPUTS; k++)
            x[k] = CHIP_SCALE * (float)(image[i][k] - CHIP_ZERO);
        start = counter();
        CHIP_RUN(y, x);
#else
        start = counter();
        CHIP_RUN(y, image[i]);
#endif
        n = counted(start, counter());
        if (n > most)
            most = n;
        hash = hash_outputs(hash);
#ifdef CHIP_HOSTED
        compare(i);
#endif
    }
    print_hash(hash);
#ifdef CHIP_HOSTED
    printf(" apart %.3f\n", apart);
#else
    print(" instructions ");
    print_number(most, 10);
    print("\n");
#endif
    end();
}
#endif
