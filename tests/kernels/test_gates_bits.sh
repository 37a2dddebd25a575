# SPDX-License-Identifier: MIT-0
# test_gates_bits.sh: SiLU and ELU of examples/study/gates_other.c give the bits that test_gates_other.c has recorded, by each compiler that
# is here, at each level, contraction on and off, on each instruction set.
out=build/gates_bits
. tools/job.sh
for compiler in gcc clang; do
    command -v $compiler > /dev/null || { echo "skip gates_bits $compiler: not here"; continue; }
    for flags in "-O0" "-O2 -ffp-contract=off" "-O3 -ffp-contract=fast" "-O3 -march=native -ffp-contract=fast"; do
        $compiler -std=c99 $flags -I.. -I. study/test_gates_other.c $IMPLEMENTATION -o $out/bits -lm > $out/log 2>&1 ||
            { grep -q 'march' $out/log && echo "skip gates_bits $compiler $flags: unknown here" || echo "FAIL gates_bits $compiler $flags: $(grep -m1 error $out/log)"; continue; }
        for isa in scalar avx2 avx512 neon; do
            LGELU_ISA=$isa $out/bits --bits > $out/log 2>&1
            verdict $? "$compiler $flags, $isa: SiLU's and ELU's recorded bits" "$(grep -m1 FAIL $out/log)"
        done
    done
done
exit 0
