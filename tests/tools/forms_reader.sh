# SPDX-License-Identifier: MIT-0
# shellcheck disable=SC2034,SC2154
# forms_reader.sh: the subject `reader` of forms.sh: PP-OCR's classifier of the direction of lines, ch_ppocr_mobile_v2.0_cls_infer.onnx.
# Lines are made of a text, for the conversion (960) and for the test (1,000).
input=x size=1,3,48,192 small_size=1,3,48,192

programs_and_arrays()
{
    make -s -C "$tools/../../examples" build/reluize build/onnx_run build/onnx_c > /dev/null
    programs=$tools/../../examples/build
    mkdir -p "$out"
    lines() { [ -f "$3" ] || $python "$tools/reader_lines.py" "$data/text/tinyshakespeare.txt" "$data/photos/scenes" "$1" "$2" "$3"; }
    lines 1000 1 "$out/test.npy"
    lines 960 2 "$out/samples.npy"
}

convert() { "$programs/reluize" "$model" --data "$out/samples.npy" --samples 512 "$@"; }

score() { $python "$tools/forms_reader.py" "$out" "$@"; }

smaller() { $python -c 'import numpy, sys; numpy.save(sys.argv[2], numpy.load(sys.argv[1], mmap_mode="r")[:1])' "$out/test.npy" "$1"; }
