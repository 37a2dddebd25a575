# SPDX-License-Identifier: MIT-0
# test_vendoring.sh: the recipes of VENDORING in lgelu.h, for hosts that are compiled with -Ofast: each gives the bits of a plain -O2
# build, and without one of them the compiler stops with a message that names the cure; small processors. What one gate links: see
# test_header.
out=build/vendoring
. tools/job.sh
cat > $out/kernels.c <<'C'
#define LGELU_IMPLEMENTATION
#include "lgelu.h"
C
# a host that prints a hash of what the kernels return, also for values and results below 2^-126
cat > $out/host.h <<'C'
#include <stdio.h>
static unsigned long long hash = 14695981039346656037u;
static void add(const float *a, int n)
{
    const unsigned char *byte = (const unsigned char *)a;
    int i;
    for (i = 0; i < n * 4; i++)
        hash = (hash ^ byte[i]) * 1099511628211u;
}
int main(void)
{
    static float x[4096], y[4096], dx[4096];
    unsigned bits, i;
    for (i = 0; i < 4096; i++) {
        bits = i * 0x00100401u + (i & 1 ? 0x80000000u : 0);
        if ((bits & 0x7FFFFFFF) >= 0x7F800000)
            bits &= 0x8FFFFFFF;
        ((unsigned *)(void *)x)[i] = bits;
    }
    lgelu_forward(y, x, 1, 4096);
    add(y, 4096);
    lgelu_backward(dx, x, y, 1.5f, 4096);
    add(dx, 4096);
    lgelu_tanh_forward(y, x, 4096);
    add(y, 4096);
    lgelu_silu_forward(y, x, 1.702f, 4096);
    add(y, 4096);
    lgelu_silu_backward(dx, x, y, 1, 4096);
    add(dx, 4096);
    printf("%llx\n", hash);
    return 0;
}
C
printf '#include "lgelu.h"\n#include "host.h"\n' > $out/host.c
printf '#define LGELU_STATIC\n#define LGELU_IMPLEMENTATION\n#include "lgelu.h"\n#include "host.h"\n' > $out/one_file.c
printf '#pragma GCC optimize("no-fast-math")\n' | cat - $out/one_file.c > $out/pragma.c
# AVX-512 would double the time of compilation; the flags act on its kernels as on the others
flags="-fno-strict-aliasing -w -DLGELU_NO_AVX512 -I.. -I$out"

# hashed NAME COMMAND...: what the program prints that the commands make
hashed() { program=$out/$1; shift; rm -f $program; "$@" -o $program -lm > $program.log 2>&1 && $program; }
for compiler in gcc clang; do
    if ! command -v $compiler > /dev/null; then echo "skip recipes with $compiler: not installed"; continue; fi
    $compiler -std=c99 -O2 $flags -c $out/kernels.c -o $out/kernels.o
    want=$(hashed plain $compiler -std=c99 -O2 $flags $out/host.c $out/kernels.o)
    verdict $([ -n "$want" ]; echo $?) "$compiler: a plain build" "$(head -1 $out/plain.log)"
    $compiler -std=c99 -Ofast $flags -c $out/host.c -o $out/host.o
    got=$(hashed object $compiler -std=c99 -Ofast $flags $out/host.o $out/kernels.o)
    verdict $([ "$got" = "$want" ]; echo $?) "$compiler: an object of its own in a program with -Ofast" "$got, not $want"
    got=$(hashed behind $compiler -std=c99 -Ofast $flags -fno-fast-math $out/one_file.c)
    verdict $([ "$got" = "$want" ]; echo $?) "$compiler: -fno-fast-math behind -Ofast" "$got, not $want"
    if [ $compiler = gcc ]; then
        got=$(hashed pragma $compiler -std=c99 -Ofast $flags $out/pragma.c)
        verdict $([ "$got" = "$want" ]; echo $?) "gcc: #pragma GCC optimize(\"no-fast-math\")" "$got, not $want: $(head -1 $out/pragma.log)"
    fi
    $compiler -std=c99 -Ofast $flags -fsyntax-only $out/one_file.c 2>&1 | grep -q 'compile this file without -ffast-math'
    verdict $? "$compiler: -Ofast alone is refused, with the cure" "it is not"
done

# ---- what the recipes say of arguments: dx is overwritten, and comes first ----
cat > $out/order.c <<'C'
#define LGELU_IMPLEMENTATION
#include "lgelu.h"
int main(void)
{
    float x = 2, dy = 3, dx = 1000, sum = 1000;
    lgelu_backward(&dx, &dy, &x, INFINITY, 1);
    lgelu_backward(&sum, &dy, &x, INFINITY, 1);
    return !(dx == 3 && sum == 3 && dy == 3 && x == 2);
}
C
hashed order ${CC:-cc} -std=c99 -O1 $flags $out/order.c
verdict $? "dx is overwritten, arguments are dx, dy, x" "$(head -1 $out/order.log)"

# Processors without atomic operations: nothing that only a library for threads has may be called.
printf '#define LGELU_TRAINER\n#define LGELU_IMPLEMENTATION\n#include "lgelu.h"\n' > $out/all.c
while read -r name prefix how; do
    command -v ${prefix}gcc > /dev/null || { echo "skip no atomic operations, $name: no ${prefix}gcc"; continue; }
    ${prefix}gcc -std=c99 -O0 $how -w -I.. -c $out/all.c -o $out/bare.o > $out/bare.log 2>&1
    calls=$(${prefix}nm -u $out/bare.o 2>&1)
    case $calls in *' sqrt'*) ;; *) calls="it does not compile: $(head -1 $out/bare.log)" ;; esac
    case $calls in *atomic*|*sync*|*'not compile'*) false ;; *) true ;; esac
    verdict $? "$name, which has no atomic operations: no call of them" "$(echo "$calls" | grep 'atomic\|sync\|compile')"
done <<'END'
Cortex-M0 arm-none-eabi- -mcpu=cortex-m0 -mthumb
RV32IMC riscv64-unknown-elf- -march=rv32imc -mabi=ilp32 --specs=picolibc.specs
END
exit $bad
