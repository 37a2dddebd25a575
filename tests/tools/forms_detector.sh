# SPDX-License-Identifier: MIT-0
# shellcheck disable=SC2034,SC2154
# forms_detector.sh: what forms.sh and detector_run.sh have in common: a YOLOX detector and its photographs. $data has folders of
# photographs without labels, and `labelled` with `labelled.json` (COCO's form). Read by them after $tools, $python, $model, $data and $out
# are set.
input=images size=1,3,416,416 small_size=1,3,96,96

# programs_and_arrays: compiles the programs, and makes $out/samples.npy of the photographs without labels, $out/test.npy of those with labels
programs_and_arrays()
{
    make -s -C "$tools/../../examples" build/reluize build/onnx_run build/onnx_c > /dev/null
    programs=$tools/../../examples/build
    mkdir -p "$out"
    folders=$(find "$data" -mindepth 1 -maxdepth 1 -type d ! -name labelled | sort)
    # shellcheck disable=SC2086
    [ -f "$out/samples.npy" ] || $python "$tools/detector_photos.py" 416 "$out/samples.npy" $folders
    [ -f "$out/test.npy" ] || $python "$tools/detector_photos.py" 416 "$out/test.npy" "$data/labelled"
}

# convert OPTION...: converts the detector, with SAMPLES (48) photographs
convert() { "$programs/reluize" "$model" --data "$out/samples.npy" --raw --kept 4,0.3 --class-axis none --samples "${SAMPLES:-48}" "$@"; }

# score ROW...: prints the table of precision
score() { $python "$tools/forms_detector.py" "$out" "$data/labelled.json" "$@"; }

# smaller FILE.npy: a photograph of the size that a microcontroller has memory for
smaller() { $python "$tools/detector_photos.py" 96 "$1" "$data/labelled"; }
