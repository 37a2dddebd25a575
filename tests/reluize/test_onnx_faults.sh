# SPDX-License-Identifier: MIT-0
# test_onnx_faults.sh: a fault in the reader of ONNX files can't become another network. For each operator that onnx_in.c reads there
# is a network (tools/onnx_fault_nets.c) in which reluize, with the reader as it is, finds what the evaluation of the file computes;
# with one fault in the operator (tools/onnx_faults.h, in a copy of onnx_in.c) it refuses the network and names a value that differs.
out=build/onnx_faults
. tools/job.sh
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
mkdir -p $out/nets
$CC -std=c99 -O1 $WARNINGS tools/onnx_fault_nets.c $IMPLEMENTATION -lm -o $out/onnx_fault_nets && $out/onnx_fault_nets $out/nets > $out/list || exit 1
$CC $RELUIZE $IMPLEMENTATION -lm -o $out/sound || exit 1
sed -e '/^static int onnx_read_node/i #include "onnx_faults.h"' -e 's/onnx_operators\[k\].read(m, n)/fault_read(m, n, onnx_operators[k].read)/' \
    -e 's/^#include <string.h>/&\n#include <stdio.h>/' ../examples/network/onnx_in.c > $out/onnx_in.c
[ "$(diff ../examples/network/onnx_in.c $out/onnx_in.c | grep -c '^>')" = 3 ]
verdict $? "the copy of onnx_in.c has the faults"
$CC -std=c99 -O0 -w -Itools $out/onnx_in.c $(echo $RELUIZE | tr ' ' '\n' | grep -v '/onnx_in.o') $IMPLEMENTATION -lm \
    -o $out/faulty || exit 1

# every operator has a network, except LogSoftmax, which is read only to be refused
sed -n '/^} onnx_operators/,/};/s/.*{ "\([A-Za-z]*\)", onnx_op_.*/\1/p' ../examples/network/onnx_in.c | grep -v -x LogSoftmax | sort > $out/operators
cut -f 1 $out/list | sort | cmp - $out/operators > /dev/null
verdict $? "each of the $(wc -l < $out/operators) operators that are read has a network and a fault" "$(cut -f 1 $out/list | sort | comm -3 - $out/operators | tr '\n' ' ')"

good=0 refused=0 named=0
while IFS='	' read -r op input fault; do
    run="$out/nets/$op.onnx --data $out/nets/x_$input.npy --labels $out/nets/labels.npy --epochs 1 --quiet"
    $out/sound $run -o $out/$op.onnx > $out/stdout 2> $out/stderr && good=$((good + 1)) || verdict 1 "$op is read" "$(tail -n 1 $out/stderr)"
    rm -f $out/$op.onnx
    $out/faulty $run -o $out/$op.onnx > $out/stdout 2> $out/stderr
    if [ $? = 1 ] && [ ! -e $out/$op.onnx ] && grep -q 'computes other outputs than the file.*; the first value that differs is' $out/stderr; then
        refused=$((refused + 1))
        grep -q "the first value that differs is 'f'" $out/stderr && named=$((named + 1))
    else verdict 1 "$op, $fault: the fault is refused" "$(tail -n 1 $out/stderr)"; fi
done < $out/list
all=$(wc -l < $out/list)
[ $good = $all ]
verdict $? "$good of $all networks, one for each operator, are read as their files"
[ $refused = $all ]
verdict $? "$refused of $all faults, one in each operator, are refused, and a value that differs is named; $named times the operator's own"
exit $bad
