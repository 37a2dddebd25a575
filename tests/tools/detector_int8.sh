# SPDX-License-Identifier: MIT-0
# detector_int8.sh MODEL.onnx PHOTOS OUT [OPTION...]: what a YOLOX detector, and its conversions with one and three ReLUs a gate, lose in
# 8 bits: the boxes that each file in 8 bits has in common with the same network in floats. PHOTOS has folders of photographs, from which
# ranges come, and `labelled`, whose first IMAGES (48) are compared. OUT: a folder to write to. OPTION: of reluize, such as --bits 4.
# reluize chooses ranges and rounding for each network; forms.sh has the same ones for all. Where NODE_PATH has onnxruntime-node, its
# integer kernels compute the files, too. PYTHON has NumPy and Pillow.
#
#     sh tests/tools/detector_int8.sh yolox_nano.onnx photos run8
# shellcheck disable=SC1091,SC2034,SC2154
set -e
least=3
. "$(dirname "$0")/detector_start.sh"
shift 3
$python -c "import numpy, sys; numpy.save(sys.argv[2], numpy.load(sys.argv[1])[:int(sys.argv[3])])" \
    "$out/test.npy" "$out/images.npy" "${IMAGES:-48}"
runtime=
node -e 'require("onnxruntime-node")' 2> /dev/null && runtime=$tools/onnx_runtime_run.js

# beside FLOATS EIGHT: by the evaluator, and by ONNX Runtime
beside()
{
    for program in "$programs/onnx_run" $runtime; do
        echo "$(basename "$program"): $($python "$tools/detector_boxes.py" "$program" "$1" "$out/images.npy" "$2")"
    done
}
for k in 1 3; do
    convert --relus $k --quiet -o "$out/relu$k.onnx" --int8 "$out/relu$k.8.onnx" --int8-before "$out/before.8.onnx" \
        --report "$out/relu$k.txt" "$@" > /dev/null
    [ $k != 1 ] || beside "$model" "$out/before.8.onnx"
    beside "$out/relu$k.onnx" "$out/relu$k.8.onnx"
done
