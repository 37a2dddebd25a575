# SPDX-License-Identifier: MIT-0
# same_bits.sh COMPILER-LEVEL-CONTRACTION-LANGUAGE (gcc-O3native-fast-c99): compiles test_same_bits.c in that configuration, without a
# warning, and runs it. COMPILER-openmp uses OpenMP, on 1, 2, 3 and 8 threads; $PROGRAM may name a program that was compiled so.
compiler=${1%%-*}
rest=${1#*-}
name=$(echo "$1" | sed 's/O3native/O3 -march=native/; s/-\(O[0-3]\)/ -\1/; s/-off/ -ffp-contract=off/; s/-fast/ -ffp-contract=fast/; s/-\(c[9+]\)/ -std=\1/')
flags="-I.. -I."
language=c
case $rest in
*c++11)
    language=c++
    flags="$flags -std=c++11"
    case $compiler in gcc) compiler=g++ ;; clang) compiler=clang++ ;; esac
    ;;
*)      flags="$flags -std=c99" ;;
esac
case $rest in
O0-*)       flags="$flags -O0" ;;
O2-*)       flags="$flags -O2" ;;
O3native-*) flags="$flags -O3 -march=native" ;;
openmp)     flags="$flags -O1 -fopenmp" ;;
esac
case $rest in
*-off-*)  flags="$flags -ffp-contract=off" ;;
*-fast-*) flags="$flags -ffp-contract=fast" ;;
esac
if ! command -v "$compiler" > /dev/null; then echo "skip $name: no $compiler here"; exit 0; fi
if ! printf '#include <math.h>\nint main(void) { return 0; }\n' | "$compiler" -x $language $flags - -o "build/bits-$1.probe" -lm 2> /dev/null; then
    echo "skip $name: this $compiler can't ${language} or one of $flags"
    exit 0
fi
rm -f "build/bits-$1.probe"
program=build/bits-$1
if [ "$PROGRAM" ]; then program=$PROGRAM
elif ! "$compiler" -x $language $flags $WARNINGS kernels/test_same_bits.c -o "$program" -lm 2> "$program.warnings"; then
    echo "FAIL $name: does not compile: $(grep -m1 error "$program.warnings")"
    exit 1
elif [ -s "$program.warnings" ]; then echo "FAIL no warnings, $name: $(grep -m1 warning "$program.warnings")"
else echo "ok no warnings, $name"; fi
if [ "$rest" != openmp ]; then "$program"; exit; fi
status=0
for threads in 1 2 3 8; do
    OMP_NUM_THREADS=$threads "$program" > "build/bits-$1.$threads" || status=1
    sed "s/^ok /ok $threads threads, /; s/^FAIL /FAIL $threads threads, /" "build/bits-$1.$threads"
done
exit $status
