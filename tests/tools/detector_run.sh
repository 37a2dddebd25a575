# SPDX-License-Identifier: MIT-0
# detector_run.sh MODEL.onnx PHOTOS MINUTES OUT [OPTION...]: converts a YOLOX detector to ReLU, trains it for so many minutes towards the
# original without labels, and prints the run, the boxes that the conversion and the trained file have in common with the original, and
# their precision. PHOTOS has folders of photographs without labels, and `labelled` with `labelled.json` (COCO's form), which nothing is
# trained with. OUT: a folder to write to. OPTION: of reluize: --line, --train-size 320, --distil-rate. PYTHON has NumPy and Pillow.
#
#     sh tests/tools/detector_run.sh yolox_nano.onnx photos 60 run --train-size 320
set -e
tools=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
[ $# -ge 4 ] || { sed -n '2,/^set/p' "$0" | sed '$d' >&2; exit 2; }
model=$1 photos=$2 minutes=$3 out=$4
shift 4
make -s -C "$tools/../../examples" build/reluize build/onnx_run > /dev/null
programs=$tools/../../examples/build
mkdir -p "$out"
folders=$(find "$photos" -mindepth 1 -maxdepth 1 -type d ! -name labelled | sort)
# shellcheck disable=SC2086
$python "$tools/detector_photos.py" 416 "$out/photos.npy" $folders
$python "$tools/detector_photos.py" 416 "$out/labelled.npy" "$photos/labelled"
convert() { "$programs/reluize" "$model" --data "$out/photos.npy" --raw --kept 4,0.3 --class-axis none --samples 48 "$@"; }
line=
for option in "$@"; do [ "$option" != --line ] || line=--line; done
# shellcheck disable=SC2086
convert $line -o "$out/closed.onnx" --report "$out/closed.txt" --quiet > /dev/null
convert "$@" --minutes "$minutes" --augment -o "$out/distilled.onnx" --report "$out/distilled.txt"
$python "$tools/detector_boxes.py" "$programs/onnx_run" "$model" "$out/labelled.npy" "$out/closed.onnx" "$out/distilled.onnx" \
    --labels "$photos/labelled.json"
