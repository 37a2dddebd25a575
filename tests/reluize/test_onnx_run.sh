# SPDX-License-Identifier: MIT-0
# test_onnx_run.sh: the evaluator of ONNX files (onnx_run.[ch]) and its program. The node tests of python3-onnx, whose outputs NumPy
# computes, or those of a folder PUBLISHED of the ONNX repository: all that tools/onnx_conformance.py does not leave out with a reason
# must pass; a table counts them for each operator. And random graphs beside ONNX Runtime, a few of those of `make onnx_random`.
CC=${CC:-cc}
out=build/run
rm -rf $out/nodes
mkdir -p $out/nodes $out/random
. tools/verdict.sh
onnx=$(python_with onnx)
onnx_runtime && runtime=yes || runtime=
if [ -z "$onnx" ]; then
    for what in 'node tests of python3-onnx' 'onnx_run, the program' 'random graphs beside ONNX Runtime'; do echo "skip $what: $no_onnx"; done
    exit 0
fi
library="$(built ../examples/reluize/onnx/onnx_graph.c $(ls ../examples/reluize/ops/*.c)) ${IMPLEMENTATION:-tools/lgelu.c} -lm"
$CC -std=c99 -O1 $WARNINGS tools/onnx_cases.c $library -o $out/onnx_cases || exit 1
$CC -std=c99 -O1 $WARNINGS tools/onnx_random.c $(built ../examples/common/output.c) $library -o $out/onnx_random || exit 1
$CC -std=c99 -O1 $(built ../examples/reluize/app/onnx_run_main.c ../examples/reluize/app/onnx_program.c ../examples/reluize/onnx/npy.c ../examples/common/output.c) $library -o $out/onnx_run || exit 1

$onnx tools/onnx_conformance.py cases $out/nodes $PUBLISHED > $out/list 2> $out/log || { echo "FAIL node tests: $(tail -n 1 $out/log)"; exit 1; }
$out/onnx_cases $out/list $out/nodes > $out/rows || { echo "FAIL the evaluator ended at $(tail -n 1 $out/rows)"; exit 1; }
awk -F '\t' '$3 == "failed" { print "# " $1 ": " $4 }' $out/rows
awk -F '\t' '$3 == "missing" { n[$2]++; why[$2] = $4 } END { for (k in n) print "# missing " k " (" n[k] "): " why[k] }' $out/rows | sort
awk -F '\t' '$3 == "left out" { n[$4]++ } END { for (k in n) print "# left out " n[k] ": " k }' $out/rows | sort
awk -F '\t' '$3 == "passed" { n[$2]++ } END { for (k in n) printf "%s %d\n", k, n[k] }' $out/rows | sort > $out/operators
echo "# passed, by operator: $(paste -s -d , $out/operators | sed 's/,/, /g')"
awk -F '\t' '{ n[$3]++ } END { printf "# %d node tests: %d passed, %d failed, %d missing, %d left out\n", NR, n["passed"], n["failed"], n["missing"], n["left out"]
    exit n["failed"] + n["missing"] > 0 || n["passed"] < 870 }' $out/rows
verdict $? "every node test of python3-onnx that is not left out passes"

# ends STATUS TEXT ARGUMENTS...: onnx_run ends with this status and at most one line on stderr that has this text
ends()
{
    expected=$1 text=$2
    shift 2
    $out/onnx_run "$@" > $out/stdout 2> $out/stderr
    status=$?
    [ $status = $expected ] && [ $(($(wc -l < $out/stderr))) -le 1 ] && grep -q "$text" $out/stderr $out/stdout
    verdict $? "onnx_run: status $expected, $text" "status $status: $(head -n 2 $out/stderr)"
}
model=$out/nodes/test_matmul_3d.onnx
ends 0 'c	float	2,3,3' $model --random 3
$out/onnx_run $model --random 3 --output a=$out/a.npy --output b=$out/b.npy --output c=$out/c.npy &&
    $out/onnx_run $model --input a=$out/a.npy --input b=$out/b.npy --output c=$out/again.npy --threads 1 &&
    cmp $out/c.npy $out/again.npy &&
    $onnx -c "import numpy as n; a, b, c = (n.load('$out/%s.npy' % k) for k in 'abc'); assert n.allclose(a @ b, c, 1e-5, 1e-5)"
verdict $? "onnx_run: arrays in and out, as NumPy computes it"
$onnx - $out/texts.onnx <<'P'
import sys
import numpy as np
np.__dict__.update((name, kind) for name, kind in (("float", float), ("int", int), ("bool", bool), ("object", object))
                   if name not in np.__dict__)
import onnx
from onnx import helper
given = [helper.make_tensor("a", 8, [2, 1, 3], [b"x", b"yz", b"", b"x", b"y", b"yz"]), helper.make_tensor("b", 8, [4, 1], [b"yz", b"x", b"", b"z"])]
graph = helper.make_graph([helper.make_node("Equal", ["a", "b"], ["c"])], "texts", [], [helper.make_tensor_value_info("c", 9, [2, 4, 3])], given)
open(sys.argv[1], "wb").write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)]).SerializeToString())
P
$out/onnx_run $out/texts.onnx --output c=$out/c.npy && $onnx -c "
import numpy as n
a, b = n.array([['x', 'yz', ''], ['x', 'y', 'yz']]).reshape(2, 1, 3), n.array(['yz', 'x', '', 'z']).reshape(4, 1)
assert (n.load('$out/c.npy') == (a == b)).all()"
verdict $? "onnx_run: Equal of strings that are broadcast"
$onnx - $out/branch.onnx <<'P'
import sys
import numpy as np
np.__dict__.update((name, kind) for name, kind in (("float", float), ("int", int), ("bool", bool), ("object", object))
                   if name not in np.__dict__)
import onnx
from onnx import helper
value = lambda name: helper.make_tensor_value_info(name, 1, [2])
branch = lambda op: helper.make_graph([helper.make_node(op, ["x", "w"], ["t"])], op, [], [value("t")])
node = helper.make_node("If", ["yes"], ["y"], then_branch=branch("Add"), else_branch=branch("Sub"))
given = [helper.make_tensor("yes", 9, [], [True]), helper.make_tensor("w", 1, [2], [1, 2])]
graph = helper.make_graph([node], "branch", [value("x"), value("w")], [value("y")], given)
open(sys.argv[1], "wb").write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)]).SerializeToString())
P
$onnx -c "import numpy as n; n.save('$out/x.npy', n.array([1, 1], 'f')); n.save('$out/w.npy', n.array([10, 20], 'f'))"
$out/onnx_run $out/branch.onnx --input x=$out/x.npy --output y=$out/usual.npy &&
    $out/onnx_run $out/branch.onnx --input x=$out/x.npy --input w=$out/w.npy --output y=$out/y.npy && $onnx -c "
import numpy as n
assert n.load('$out/usual.npy').tolist() == [2, 3] and n.load('$out/y.npy').tolist() == [11, 21]"
verdict $? "onnx_run: a branch reads an input that replaces its default"
ends 1 "(Adam, opset" $out/nodes/test_adam.onnx --random 1
ends 1 "input 'a' is not given" $model
ends 1 "no such input" $model --random 1 --input z=$out/a.npy
ends 1 "limit" $model --random 1 --memory 10
ends 1 "not an ONNX file" $out/list
ends 2 "no such option" $model --frobnicate
ends 2 "a: given twice" $model --input a=$out/a.npy --input a=$out/b.npy
ends 2 "outputs 'a' and 'c' both name this file" $model --random 1 --output a=$out/c.npy --output c=$out/c.npy

if [ -z "$runtime" ]; then echo "skip random graphs beside ONNX Runtime: $no_runtime"
else
    sh tools/onnx_random.sh $out/random $out/onnx_random 1 500 1 > $out/random.log
    verdict $? "random graphs beside ONNX Runtime" "$(grep -v '^counts' $out/random.log | head -n 3)"
    grep '^# ' $out/random.log
fi
exit $bad
