#!/bin/sh
# SPDX-License-Identifier: MIT-0
# neon.sh: estimates how near the tile of the matrix product for NEON comes to the fma peak. It takes one step of k from the compiled
# tile of 12 rows and two vectors, which is the last of the blocks with the most fmla, and runs it through llvm-mca's model of a
# processor; the peak is what the same model reaches with those fmla alone. LLVM before 16 models a Neoverse N1 as a Cortex-A57, so the
# limit of four instructions and two fmas a cycle is printed as well. Debian: gcc-aarch64-linux-gnu, llvm.
cd "$(dirname "$0")" && mkdir -p build || exit 1
: "${AARCH64_CC:=aarch64-linux-gnu-gcc}" "${MCA:=llvm-mca}" "${CPU:=neoverse-n1}"
for program in "$AARCH64_CC" "$MCA"; do
    command -v "$program" > /dev/null || { echo "NEON's tile left out: $program is not here"; exit 0; }
done
$AARCH64_CC -std=c99 -O2 -S product.c -o build/product.s || exit 1
awk '
/^lgelu__tile2_12_neon:/ { inside = 1 }
inside && /\.size/       { exit }
!inside                  { next }
/^\.L|^\t(b|cb|tb)/      { if (count && count >= most) { most = count; best = block } block = ""; count = 0; next }
/^\t[a-z]/               { block = block $0 "\n"; count += /fmla/ }
END                      { printf "%s", best }' build/product.s > build/step.s
[ -s build/step.s ] || { echo "NEON's tile: no fmla found in build/product.s" >&2; exit 1; }
grep fmla build/step.s > build/fmla.s

# cycles FILE: prints the cycles of one round of its instructions.
cycles() { $MCA -mtriple=aarch64 -mcpu="$CPU" -iterations=1000 "$1" | awk '/^Total Cycles:/ { print $3 / 1000 }'; }
all=$(cycles build/step.s) peak=$(cycles build/fmla.s)
awk -v cpu="$CPU" -v all="$all" -v peak="$peak" -v fmla="$(grep -c . build/fmla.s)" -v n="$(grep -c . build/step.s)" \
    -v loads="$(grep -c 'ld[rp1]' build/step.s)" -v stores="$(grep -c 'st[rp]' build/step.s)" 'BEGIN {
    printf "a step of k: %d instructions, of which %d fmas, %d loads, %d stores\n", n, fmla, loads, stores
    printf "llvm-mca, %s: %.1f cycles, %.0f %% of the peak of its model\n", cpu, all, 100 * peak / all
    share = 200 * fmla / n
    if (share + 0 > 100)
        share = 100
    printf "four instructions and two fmas a cycle: %.0f %% of the peak at most\n", share
}'
