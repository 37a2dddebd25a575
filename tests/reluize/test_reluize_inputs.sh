# SPDX-License-Identifier: MIT-0
# test_reluize_inputs.sh: reluize on files whose inputs have no dimension of samples, or compute one sample alone
# (tools/reluize_inputs.py): the report is that of the file that computes the same of a batch, and only gates and numbers change.
out=build/reluize_inputs
. tools/job.sh
onnx=$(python_with onnx)
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
$CC $RELUIZE $IMPLEMENTATION -o $out/reluize -lm || exit 1
if [ -z "$onnx" ]; then echo "skip inputs without a batch: $no_onnx"; exit 0; fi
$onnx tools/reluize_inputs.py $out || exit 1

# converts MODEL REPORT OPTION...: converts, and checks that nothing else changes
converts()
{
    model=$1 report=$2
    shift 2
    $out/reluize $out/$model.onnx "$@" -o $out/relu.onnx --report $out/$report.json --quiet > $out/stdout 2> $out/stderr
    verdict $? "$report is converted" "$(tail -n 1 $out/stderr)"
    said=$($onnx tools/onnx_same.py $out/$model.onnx $out/relu.onnx 2>&1 | tail -n 1)
    [ -z "$said" ]
    verdict $? "$report: only gates and numbers change" "$said"
}

# agree NAME OTHER: compares two reports
agree()
{
    said=$($onnx tools/reluize_inputs.py $out $1 $2 2>&1)
    verdict $? "$1: the report is that of a batch" "$said"
}

for name in vector image tokens state; do
    converts ${name}_batch ${name}_batch --data $out/$name.npy
done
for name in vector image tokens; do
    converts $name $name --data $out/$name.npy
    agree $name ${name}_batch
done
converts vector vector_table --data $out/vector.csv
agree vector_table vector_batch
converts open open --data $out/vector.csv
agree open vector_batch
converts state state --data x=$out/state.npy --data h=$out/state_h.npy --data rate=$out/state_rate.npy
agree state state_batch
grep -q 'evaluated one by one' $out/state.json
verdict $? "what cannot take a batch is evaluated one by one, and the report says so"
converts state state_each --data x=$out/state.npy --data h=$out/state_each.npy --data rate=$out/state_rate.npy
agree state_each state_batch
$out/reluize $out/image.onnx --data $out/vector.npy -o $out/relu.onnx 2> $out/stderr
grep -q "'x': expected an array (samples, 8, 8), or, for one sample a run, (samples, 3, 8, 8), found (500, 16)" $out/stderr
verdict $? "another shape is refused with both that fit" "$(cat $out/stderr)"
$out/reluize $out/vector.onnx --data $out/vector.npy --size 16 -o $out/relu.onnx 2> $out/stderr
grep -q -- '--size 16,16: no input leaves the size of its images or texts open' $out/stderr
verdict $? "--size is refused where it has no use" "$(cat $out/stderr)"
$out/reluize $out/state.onnx --data x=$out/state.npy --data h=$out/state_second.npy --data rate=$out/state_rate.npy -o $out/relu.onnx 2> $out/stderr
grep -q "'h': the 500 samples are in dimension 1: give an array with the samples first" $out/stderr
verdict $? "states whose samples are not in the first dimension are refused" "$(cat $out/stderr)"
# one sample of an input stands for all
converts size size_each --data x=$out/vector.npy --data size=$out/size_each.npy
converts size size_one --data x=$out/vector.npy --data size=$out/size_one.npy
agree size_one size_each
$out/reluize $out/size.onnx --data x=$out/vector.npy --data size=$out/size_three.npy -o $out/relu.onnx 2> $out/stderr
grep -q "size_three.npy: expected at least five samples, or one for all samples of the other inputs, found 3" $out/stderr
verdict $? "three samples of an input are refused" "$(cat $out/stderr)"
$out/reluize $out/size.onnx --data x=$out/size_x.npy --data size=$out/size_one.npy -o $out/relu.onnx 2> $out/stderr
grep -q "no input has more than one sample" $out/stderr
verdict $? "one sample of each input is refused" "$(cat $out/stderr)"
exit $bad
