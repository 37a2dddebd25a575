#!/bin/sh
# SPDX-License-Identifier: MIT-0
# count.sh: counts the instructions per element for x ~ N(0,1): NEON under qemu-aarch64, which logs every instruction, AVX2 under
# valgrind, which counts them. The count of one round is subtracted from that of nine and divided by eight, which removes the
# instructions before the kernel.
cd "$(dirname "$0")" && mkdir -p build || exit 1
: "${CC:=cc}" "${AARCH64_CC:=aarch64-linux-gnu-gcc}"

neon() { LGELU_ISA=neon qemu-aarch64 -singlestep -d nochain,exec -D /dev/stdout build/count_neon "$@" | grep -c '^Trace'; }
avx2() { LGELU_ISA=avx2 valgrind --tool=callgrind --callgrind-out-file=/dev/null build/count_avx2 "$@" 2>&1 | sed -n 's/.*Collected : *//p'; }
# each NAME LANES: prints the columns of one instruction set.
each()
{
    one=$($1 "$kernel" "$lambda" 1) nine=$($1 "$kernel" "$lambda" 9)
    awk "BEGIN { n = ($nine - $one) / 8192; printf \"%10.2f%10.1f\", n, n * $2 }"
}
sets=
if $AARCH64_CC -std=c99 -O2 -static count.c -o build/count_neon -lm 2> /dev/null && command -v qemu-aarch64 > /dev/null; then sets='neon:4'
else echo "NEON left out: it takes aarch64-linux-gnu-gcc and qemu-aarch64 (Debian: gcc-aarch64-linux-gnu, qemu-user)"; fi
if $CC -std=c99 -O2 count.c -o build/count_avx2 -lm && grep -q avx2 /proc/cpuinfo && command -v valgrind > /dev/null; then sets="$sets avx2:8"
else echo "AVX2 left out: it takes valgrind and a processor that has it"; fi
printf '%-24s' 'instructions per'
for set in $sets; do printf '%20s' "${set%:*}: number vector"; done
echo
for row in forward:1 forward:30 backward:1 backward:30 tanh_forward:1 tanh_backward:1; do
    kernel=${row%:*} lambda=${row#*:}
    printf '%-24s' "$kernel, λ = $lambda"
    for set in $sets; do each "${set%:*}" "${set#*:}"; done
    echo
done
