# SPDX-License-Identifier: MIT-0
# detector_run.sh MODEL.onnx PHOTOS OUT MINUTES [OPTION...]: converts a YOLOX detector to ReLU, trains it for so many minutes towards the
# original without labels, and prints the run, the boxes that the conversion and the trained file have in common with the original, and
# their precision. PHOTOS has folders of photographs without labels, and `labelled` with `labelled.json` (COCO's form), which nothing is
# trained with. OUT: a folder to write to. OPTION: of reluize: --line, --train-size 320, --rate. PYTHON has NumPy and Pillow.
#
#     sh tests/tools/detector_run.sh yolox_nano.onnx photos run 60 --train-size 320
# shellcheck disable=SC1091,SC2034,SC2154
set -e
least=4
. "$(dirname "$0")/detector_start.sh"
minutes=$4
shift 4
line=
for option in "$@"; do [ "$option" != --line ] || line=--line; done
# shellcheck disable=SC2086
convert $line -o "$out/closed.onnx" --report "$out/closed.txt" --quiet > /dev/null
convert "$@" --minutes "$minutes" --augment -o "$out/distilled.onnx" --report "$out/distilled.txt"
$python "$tools/detector_boxes.py" "$programs/onnx_run" "$model" "$out/test.npy" "$out/closed.onnx" "$out/distilled.onnx" \
    --labels "$data/labelled.json"
