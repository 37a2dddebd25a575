# SPDX-License-Identifier: MIT-0
# shellcheck disable=SC1091,SC2034,SC2154
# detector_start.sh: how detector_run.sh and detector_int8.sh begin: with MODEL.onnx PHOTOS OUT, of at least $least arguments. PHOTOS has
# folders of photographs without labels, and `labelled`. OUT is a folder to write to. Sets $tools, $python, $model, $data and $out, and has
# what forms_detector.sh has.
tools=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
[ $# -ge "$least" ] || { sed -n '2,/^# shellcheck/p' "$0" | sed '$d' >&2; exit 2; }
model=$1 data=$2 out=$3
. "$tools/forms_detector.sh"
programs_and_arrays
