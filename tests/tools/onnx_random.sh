# SPDX-License-Identifier: MIT-0
# onnx_random.sh FOLDER PROGRAM SEED COUNT BATCHES [OPTION...]: BATCHES times COUNT random graphs (onnx_random.py, from SEED on)
# through ONNX Runtime (onnx_random.js) and the evaluator (PROGRAM: onnx_random.c). Prints what differs, and sums the counts of all
# batches. Options go to onnx_random.py. MAKER names another program that makes graphs (onnx_mutants.py). Status 1: a graph differs,
# or was refused; with MAKER, which makes what ONNX does not define as well, only that one differs.
folder=$1 program=$2 seed=$3 count=$4 batches=$5
shift 5
. tools/verdict.sh
onnx=$(python_with onnx)
onnx_runtime
mkdir -p $folder
status=0
last=$((seed + batches))
: > $folder/counts
while [ $seed -lt $last ]; do
    mkdir -p $folder/$seed
    if ! $onnx ${MAKER:-tools/onnx_random.py} $folder/cases $seed $count "$@" > $folder/made 2> $folder/unsound ||
        ! node tools/onnx_random.js $folder/cases $folder/values 2> $folder/runtime.log; then
        echo "FAIL seed $seed: $(tail -n 1 $folder/unsound) $(tail -n 1 $folder/runtime.log)"
        status=1
        seed=$((seed + 1))
        continue
    fi
    [ -s $folder/unsound ] && { head -n 3 $folder/unsound; status=1; }
    $program $folder/cases $folder/values $folder/$seed > $folder/found ||
        { [ -n "$MAKER" ] && ! grep -q '^DIFFERS' $folder/found; } || status=1
    grep '^counts' $folder/found >> $folder/counts || { echo "FAIL seed $seed: the program ended"; status=1; }
    grep -v '^counts\|^RUNTIME\|^GROWN\|^MISSING' $folder/found | sed "s/^/seed $seed: /"
    grep '^RUNTIME\|^GROWN\|^MISSING' $folder/found >> $folder/others
    rmdir $folder/$seed 2> /dev/null
    seed=$((seed + 1))
done
awk '{ for (k = 1; k <= 9; k++) n[k] += $(2 * k) }
    END { printf "# %d random graphs, %d nodes: %d differ, %d refused, %d with a missing operator; last values of %d graphs differ by rounding alone, %d read NaN, %d nodes almost cancel and agree with their value in double; ONNX Runtime refuses %d more graphs\n",
          n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[9], n[8] }' $folder/counts
exit $status
