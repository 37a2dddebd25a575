# SPDX-License-Identifier: MIT-0
# test_passes_sanitized.sh: the programs that test reluize's passes directly, under gcc's address sanitizer: the passes read and write no
# element outside of an array, and free what they allocate. What they are linked to is not under it.
CC=${CC:-cc}
out=build/passes_sanitized
mkdir -p $out
. tools/verdict.sh
sanitized='-std=c99 -O0 -g -fsanitize=address'
echo 'int main(void) { return 0; }' > $out/none.c
if ! $CC $sanitized $out/none.c -o $out/none 2> /dev/null || ! $out/none; then
    echo "skip passes under the address sanitizer: the compiler has none that runs here"
    exit 0
fi
examples=../examples
for source in $examples/reluize/passes/*.c; do
    $CC $sanitized -c $source -o $out/$(basename $source .c).o || exit 1
done
others="$(built $examples/reluize/ops/*.c $examples/reluize/onnx/onnx_graph.c) ${IMPLEMENTATION:-tools/lgelu.c}"
for program in least_squares onnx_gates onnx_relu_nets onnx_int8_nets onnx_opset onnx_c_nets onnx_distil_nets onnx_distil onnx_whiten; do
    $CC $sanitized reluize/test_$program.c $out/*.o $others -lm -pthread -o $out/test_$program || exit 1
    OMP_NUM_THREADS=1 $out/test_$program > $out/found 2> $out/err
    verdict $? "test_$program under the address sanitizer" "$(grep -h -m 1 -E 'FAIL|ERROR|SUMMARY' $out/found $out/err)"
done
exit $bad
