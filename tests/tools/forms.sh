# SPDX-License-Identifier: MIT-0
# forms.sh SUBJECT TABLE MODEL.onnx DATA OUT [NAME=FILE.onnx...]: what a network loses and costs with ReLU in place of its gates. Rows:
# `original`; `table`, the original whose SiLU gates are tables of 256 entries in 8 bits; `cold`, ReLU in place of each gate and nothing
# else; the closed-form conversions with one ReLU (`relu1`), one ReLU and a line (`line`), two and three ReLUs; then each further FILE.
# All have the same inputs for calibration, ranges and rounding (forms_quantize.c; RANGES, extremes; ROUNDING, gram), and no layer stays
# in floats. TABLE is
#     accuracy   in floats, in 8 bits and with weights of 4 bits (BITS, `8 4`), in ONNX Runtime, from SETS (3) sets of CALIBRATED (24) inputs
#     cost       size, operations, and time in ONNX Runtime on one thread, in floats and in 8 bits
#     chip       flash, RAM and instructions of the integer C file on an emulated Cortex-M7
# SUBJECT is `detector`, a YOLOX file and photographs as detector_run.sh has them, or `reader`, PP-OCR's classifier of the direction of
# lines, and a folder with text/tinyshakespeare.txt and photos/scenes. What is in OUT already is kept, so that a run can be stopped and
# continued. NODE_PATH has onnxruntime-node, PYTHON NumPy, Pillow and onnx.
#
#     sh tests/tools/forms.sh detector accuracy yolox_nano_coco.onnx photos run
# shellcheck disable=SC1090,SC2034,SC2154
set -e
tools=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
[ $# -ge 5 ] || { sed -n '2,/^# shellcheck/p' "$0" | sed '$d' >&2; exit 2; }
subject=$1 table=$2 model=$3 data=$4 out=$5
shift 5
case $subject in detector | reader) ;; *) echo "forms.sh: no subject $subject" >&2; exit 2 ;; esac
case $table in accuracy | cost | chip) ;; *) echo "forms.sh: no table $table" >&2; exit 2 ;; esac
OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
export OMP_NUM_THREADS
. "$tools/forms_$subject.sh"
programs_and_arrays

# with what `make` has compiled for reluize
reluize=$tools/../../examples/reluize
# shellcheck disable=SC2046
${CC:-cc} -std=c99 -O2 -fopenmp -I"$tools/../../examples/common" -I"$reluize/onnx" -I"$reluize/ops" -I"$reluize/passes" \
    "$tools/forms_quantize.c" \
    $(find "$programs" -maxdepth 1 \( -name 'onnx_*.o' -o -name 'int8_p*.o' \) ! -name '*_main.o' ! -name onnx_program.o | sort) \
    "$programs/npy.o" "$programs/output.o" "$programs/lgelu.o" "$programs/least_squares.o" -lm -o "$out/forms_quantize"

# row NAME FILE: a network as a row, OUT/NAME.onnx
rows=
row()
{
    cmp -s "$2" "$out/$1.onnx" || cp -f "$2" "$out/$1.onnx"
    rows="$rows $1"
}

# conversion NAME OPTION...: a conversion as a row, unless it is there
conversion()
{
    form=$1
    shift
    rows="$rows $form"
    [ -f "$out/$form.onnx" ] || convert "$@" -o "$out/$form.onnx" --report "$out/$form.txt" --quiet > /dev/null
}
row original "$model"
row table "$model"
conversion cold --cold
conversion relu1 --relus 1
conversion line --line
conversion relu2 --relus 2
conversion relu3 --relus 3
for other in "$@"; do
    row "${other%%=*}" "${other#*=}"
done

# quantized ROW BITS SET: a row in 8 bits, OUT/ROW.BITS.SET.onnx, unless it is there and newer than the row
calibrated=${CALIBRATED:-24}
quantized()
{
    whole=
    [ "$1" != table ] || whole=whole
    to=$out/$1.$2.$3.onnx
    if [ ! -f "$to" ] || [ -n "$(find "$out/$1.onnx" -newer "$to")" ]; then
        "$out/forms_quantize" "$out/$1.onnx" "$out/samples.npy" $((($3 - 1) * calibrated)) "$calibrated" "$to" "$2" \
            "${RANGES:-extremes}" "${ROUNDING:-gram}" $whole > "$to.txt"
    fi
}
files=
widths=8 sets=1
[ "$table" != accuracy ] || { widths=${BITS-8 4} sets=${SETS:-3}; }
for name in $rows; do
    files="$files $name=$out/$name.onnx"
    for bits in $widths; do
        for set in $(seq "$sets"); do
            quantized "$name" "$bits" "$set"
        done
    done
done

# shellcheck disable=SC2086
case $table in
    accuracy) score $rows ;;
    cost)
        $python "$tools/forms_count.py" "$input=$size" $files
        echo
        node "$tools/forms_time.js" "$input=$out/test.npy" $files
        ;;
    chip)
        smaller "$out/chip.npy"
        # shellcheck disable=SC2046
        $python "$tools/forms_chip.py" "$programs" "$out/chip" "$input=$small_size" "$out/chip.npy" \
            $(for name in $rows; do echo "$name=$out/$name.8.1.onnx"; done)
        ;;
esac
