# SPDX-License-Identifier: MIT-0
# test_onnx_inline.sh: functions of the model in place of their calls (onnx_graph_inline): the written file computes the same bits as the
# evaluation of the calls, and onnx accepts it; so do branches in place of nodes If (onnx_graph_branches); reluize converts what is in functions as it converts the same network without them; modules
# that PyTorch exports as functions; every allocation that fails is reported.
out=build/onnx_inline
. tools/job.sh
onnx=$(python_with onnx)
torch=$(python_with torch.onnx)
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
graph=../examples/reluize/onnx/onnx_graph.c
wrapped=$(printf ' -Wl,--wrap=%s' malloc calloc realloc fopen fdopen open fclose close fflush fsync rename)
$CC -std=c99 -O1 $WARNINGS -Werror tools/onnx_inline.c $graph -lm -o $out/inline || exit 1
$CC -O1 tools/onnx_inline.c $graph tools/faults.c $wrapped -lm -o $out/inline_faults || exit 1
$CC $RELUIZE $IMPLEMENTATION -o $out/reluize -lm || exit 1
$CC $PARTS_FOLDER/onnx_run_main.o $PARTS_FOLDER/onnx_program.o $(echo $RELUIZE | tr ' ' '\n' | grep -e '/onnx_run' -e int8_product -e int8_planes -e onnx_graph -e npy.o -e output.o) $IMPLEMENTATION \
    -o $out/onnx_run -lm || exit 1
if [ -z "$onnx" ]; then echo "skip functions of the model: $no_onnx"; exit 0; fi
$onnx tools/onnx_functions.py $out || exit 1

# inlined NAME: evaluates NAME.onnx with its calls, and with its functions in their place
inlined()
{
    $out/inline $out/$1.onnx $out/$1.in.onnx > $out/log &&
        $out/onnx_run $out/$1.onnx --input x=$out/$1.npy --output y=$out/$1.y.npy > $out/log 2>&1 &&
        $out/onnx_run $out/$1.in.onnx --input x=$out/$1.npy --output y=$out/$1.in.y.npy > $out/log 2>&1 &&
        cmp $out/$1.y.npy $out/$1.in.y.npy > $out/log 2>&1
    verdict $? "$1: functions in place of their calls compute the same bits" "$(tail -n 1 $out/log)"
}
# accepted NAME: onnx checks the file, which has no functions
accepted()
{
    $onnx tools/onnx_functions.py $out check $1 > $out/log 2>&1
    verdict $? "$1: onnx accepts it, and it has no functions" "$(tail -n 1 $out/log)"
}
# converted NAME: reluize; the report without the lines that name the model, its functions and values
converted()
{
    $out/reluize $out/$1.onnx --data $out/$2.npy -o $out/$1.relu.onnx --quiet > $out/$1.report 2> $out/log
    verdict $? "$1: reluize converts it" "$(tail -n 1 $out/log)"
    grep -e '^cold swap' -e '^refitted' -e '^Gates' $out/$1.report > $out/$1.figures
}
# as_without NAME FLAT: the report has the figures of the network without functions
as_without()
{
    converted $1 $1
    converted $2 $1
    [ $(wc -l < $out/$1.figures) = 3 ] && cmp $out/$1.figures $out/$2.figures > $out/log 2>&1
    verdict $? "$1: the figures are those of the network without functions" "$(cat $out/log $out/$1.figures)"
    grep -q '^The functions of the model ([0-9]*) stand in place of their calls; this computes the same bits.$' $out/$1.report
    verdict $? "$1: the report says so"
    accepted $1.relu.onnx
}

for name in nested branches copies; do
    inlined $name
    accepted $name.in.onnx
done
as_without nested nested_flat
$out/onnx_run $out/nested_flat.onnx --input x=$out/nested.npy --output y=$out/nested_flat.y.npy > $out/log 2>&1 &&
    cmp $out/nested.y.npy $out/nested_flat.y.npy > $out/log 2>&1
verdict $? "attributes of calls, and their defaults, are those of the network without functions" "$(tail -n 1 $out/log)"
converted copies copies
converted branches branches

inlined opset
converted opset opset
grep -q '^Gates: 1 replaced by 1 ReLU, 1 smooth function stays.$' $out/opset.report && grep -q 'it is in a function of the model' $out/opset.report
verdict $? "opset: a function of another opset stays in its call, and is named" "$(grep '^Gates' $out/opset.report)"

# the model has three nodes If, of which the first and the last take the first branch, the second the other one
for letters in tet t-- -e- --t; do
    $out/inline $out/branches.in.onnx $out/taken.onnx $letters > $out/log &&
        $out/onnx_run $out/taken.onnx --input x=$out/branches.npy --output y=$out/taken.y.npy > $out/log 2>&1 &&
        cmp $out/branches.y.npy $out/taken.y.npy > $out/log 2>&1 &&
        [ $(grep -ao then_branch $out/taken.onnx | wc -l) = $(printf %s $letters | tr -d te | wc -c) ]
    verdict $? "branches $letters in place of nodes If compute the same bits" "$(tail -n 1 $out/log)"
    accepted taken.onnx
done
$out/inline $out/branches.in.onnx $out/taken.onnx ett > $out/log &&
    $out/onnx_run $out/taken.onnx --input x=$out/branches.npy --output y=$out/taken.y.npy > $out/log 2>&1 && ! cmp -s $out/branches.y.npy $out/taken.y.npy
verdict $? "the other branches compute something else" "$(tail -n 1 $out/log)"

# faults IN OUT BRANCHES: the first call for memory or a file fails, then the second, ...: it is reported, or the file is OUT
faults()
{
    at=1
    worst=
    rm -f $out/missed
    while [ -z "$worst" ] && [ ! -e $out/missed ] && [ $at -lt 5000 ]; do
        rm -f $out/fault.onnx
        FAULT_AT=$at FAULT_MISSED=$out/missed $out/inline_faults $out/$1 $out/fault.onnx $3 > $out/log 2>&1
        status=$?
        if [ $status = 0 ]; then cmp $out/fault.onnx $out/$2 > $out/log 2>&1; else [ $status = 1 ] && [ -s $out/log ]; fi ||
            worst="call $at: status $status"
        at=$((at + 1))
    done
    [ -z "$worst" ] && [ -e $out/missed ] && [ $at -gt 100 ]
    verdict $? "each call for memory or a file that fails is reported${3:+, of branches}" "$worst"
}
faults branches.onnx branches.in.onnx
$out/inline $out/branches.in.onnx $out/taken.onnx tet
faults branches.in.onnx taken.onnx tet

if [ -z "$torch" ]; then echo "skip modules that PyTorch exports as functions: $no_torch"; exit $bad; fi
$torch -W ignore tools/onnx_functions_torch.py $out > $out/log 2>&1 || { echo "FAIL export: $(tail -n 1 $out/log)"; exit 1; }
for name in residual transformer perceptron; do
    inlined $name
    as_without $name ${name}_flat
done
exit $bad
