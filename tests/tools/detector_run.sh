# SPDX-License-Identifier: MIT-0
# detector_run.sh MODEL.onnx PHOTOS MINUTES OUT [OPTION...]: converts a YOLOX detector to ReLU, trains it for so many minutes towards the
# original without labels, and prints the run, the boxes that the conversion and the trained file have in common with the original, and
# their precision. PHOTOS has folders of photographs without labels, and `labelled` with `labelled.json` (COCO's form), which nothing is
# trained with. OUT: a folder to write to. OPTION: of reluize: --line, --train-size 320, --rate. PYTHON has NumPy and Pillow.
#
#     sh tests/tools/detector_run.sh yolox_nano.onnx photos 60 run --train-size 320
# shellcheck disable=SC1091,SC2154
set -e
tools=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
[ $# -ge 4 ] || { sed -n '2,/^# shellcheck/p' "$0" | sed '$d' >&2; exit 2; }
model=$1 data=$2 minutes=$3 out=$4
shift 4
. "$tools/forms_detector.sh"
programs_and_arrays
line=
for option in "$@"; do [ "$option" != --line ] || line=--line; done
# shellcheck disable=SC2086
convert $line -o "$out/closed.onnx" --report "$out/closed.txt" --quiet > /dev/null
convert "$@" --minutes "$minutes" --augment -o "$out/distilled.onnx" --report "$out/distilled.txt"
$python "$tools/detector_boxes.py" "$programs/onnx_run" "$model" "$out/test.npy" "$out/closed.onnx" "$out/distilled.onnx" \
    --labels "$data/labelled.json"
