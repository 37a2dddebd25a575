# SPDX-License-Identifier: MIT-0
# test_onnx_relu.sh: the conversion of an ONNX file over its own graph (onnx_relu.h, onnx_gates.h): gates in every spelling and where
# they begin and end, the change of each kind of matrix beside NumPy's normal equations, the edits of the file, and, with ONNX
# Runtime, outputs that are nearer to the original than those of a cold swap.
CC=${CC:-cc}
out=build/onnx_relu
mkdir -p $out
. tools/verdict.sh
onnx=$(python_with onnx)
if [ -z "$onnx" ]; then echo "skip conversions of ONNX files: $no_onnx"; exit 0; fi
parts=$(built ../examples/reluize/passes/onnx_gates.c ../examples/reluize/onnx/onnx_graph.c ../examples/reluize/passes/least_squares.c ../examples/reluize/onnx/npy.c \
    $(ls ../examples/reluize/passes/onnx_relu*.c ../examples/reluize/passes/onnx_rewrite.c ../examples/reluize/ops/*.c))
$CC -std=c99 -O1 $WARNINGS tools/onnx_relu.c $parts ${IMPLEMENTATION:-tools/lgelu.c} -lm -o $out/onnx_relu || exit 1
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
$onnx tools/onnx_relu.py $out $out/onnx_relu 2> $out/err || verdict 1 "conversions of ONNX files" "$(tail -n 1 $out/err)"
if onnx_runtime; then
    node tools/onnx_run.js $out/list $out write > $out/runtime || verdict 1 "ONNX Runtime reads what is written" "$(head -n 1 $out/runtime)"
    $onnx tools/onnx_relu_near.py $out 2> $out/err || verdict 1 "outputs of ONNX Runtime" "$(tail -n 1 $out/err)"
else
    echo "skip outputs of converted files: $no_runtime"
fi
exit $bad
