# SPDX-License-Identifier: MIT-0
# test_onnx_run_bits.sh: the evaluator of ONNX files computes the same bits on each instruction set, on one and two threads, and
# compiled by gcc or clang, with contraction or without: a small ResNet, a vision Transformer, a GPT, and, where python3-onnx is
# installed, its node tests.
out=build/onnx_run_bits
mkdir -p $out/nodes
. tools/verdict.sh
onnx=$(python_with onnx)
: > $out/list
[ -z "$onnx" ] || $onnx tools/onnx_conformance.py models $out/nodes > $out/list 2> $out/log
sources="tools/onnx_run_bits.c $(ls ../examples/reluize/ops/*.c) ../examples/reluize/onnx/onnx_graph.c ../examples/network/onnx_out.c"
objects=
[ -z "$ONNX_READER" ] || objects="tools/onnx_run_bits.c $ONNX_READER $PARTS_FOLDER/onnx_out.o"
# The library may have been compiled with OpenMP, whose flag is another one for each compiler.
library=$(echo "${IMPLEMENTATION:-build/lgelu.o}" | sed 's/-fopenmp/-lgomp/')
first=
# bits NAME SOURCES COMPILER [FLAGS]: the hashes of this build, which must be those of the first one
bits()
{
    name=$1
    files=$2
    shift 2
    command -v $1 > /dev/null || { echo "skip the evaluator's bits with $name: not installed"; return; }
    "$@" -std=c99 $files $library -pthread -lm -o $out/bits > $out/log 2>&1 &&
        xargs $out/bits < $out/list > "$out/$name" 2>> $out/log
    status=$?
    first=${first:-$name}
    [ $status = 0 ] && cmp -s "$out/$first" "$out/$name" || status=1
    verdict $status "the evaluator's bits with $name: $(($(wc -l < "$out/$name"))) models" "$(diff "$out/$first" "$out/$name" | head -n 2 | tr '\n' ' ')"
}
# the objects that make compiles with -O2, or the sources
bits "${CC:-gcc} -O2" "${objects:-$sources}" ${CC:-gcc} -O2
# These options of -O2 contract and inline; the others only take time.
bits 'gcc, contracted' "$sources" gcc -O1 -fexpensive-optimizations -finline-small-functions -march=native -ffp-contract=fast
bits 'clang, contracted' "$sources" clang -O1 -finline-functions -march=native -ffp-contract=fast
exit $bad
