# SPDX-License-Identifier: MIT-0
# test_reluize_int8.sh: any graph in 8 bits (onnx_int8.h). Random graphs (tools/onnx_quantize.py) beside ONNX Runtime, without its
# optimisations and with them, when it computes by integers; and reluize --int8 and --bits on networks as people have them.
# STAGE=graphs, equal or files: only this part.
out=build/reluize_int8
. tools/job.sh
onnx=$(python_with onnx)
onnx_runtime && runtime=yes || runtime=
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
library="$IMPLEMENTATION -lm"
passes=$(echo $RELUIZE | tr ' ' '\n' | grep -e onnx_run -e int8_product -e int8_planes -e onnx_graph -e onnx_gates -e onnx_relu -e onnx_int8 -e onnx_rewrite -e least_squares -e output.o)
$CC -std=c99 -O1 $WARNINGS -D_POSIX_C_SOURCE=200809L tools/onnx_quantize.c $passes $library -o $out/onnx_quantize || exit 1
$CC $RELUIZE $library -o $out/reluize || exit 1

# ---- random graphs ----
if ! stage graphs; then :
elif [ -z "$onnx" ]; then echo "skip random graphs in 8 bits: $no_onnx"
else
    cases onnx_quantize $out/cases ${SEED:-1} ${GRAPHS:-250} && $out/onnx_quantize make $out/cases $out/quantized > $out/made
    verdict $? "random graphs in 8 bits: $(sed -n 's/^# //p' $out/made)" "$(head -n 1 $out/made)"
    if [ -z "$runtime" ]; then echo "skip random graphs in 8 bits beside ONNX Runtime: $no_runtime"
    else
        node tools/onnx_random.js $out/quantized $out/values && $out/onnx_quantize steps $out/quantized $out/values > $out/found
        verdict $? "ONNX Runtime computes the same: $(sed -n 's/^# //p' $out/found)" "$(head -n 1 $out/found)"
        ORT_OPTIMISE=all node tools/onnx_random.js $out/quantized $out/values &&
            $out/onnx_quantize check $out/quantized $out/values > $out/found
        verdict $? "and by its integer kernels: $(sed -n 's/^# //p' $out/found)" "$(head -n 1 $out/found)"
        awk '/^#/ { for (k = 1; k < NF; k++) if ($k == "change,") exit !($(k + 1) < 0.01) }' $out/found
        verdict $? "of graphs that ONNX Runtime does not change, fewer than 0.01 % are more than one step apart"
        onnx_folder=$out $onnx - << 'P'
import os
import numpy as np
import onnx
from onnx import helper, numpy_helper
t = lambda name, a, kind: numpy_helper.from_array(np.asarray(a, dtype=kind), name)
nodes = [helper.make_node(op, inputs, [y], **a) for op, inputs, y, a in
         (("QuantizeLinear", ["x", "s", "z"], "q", {}), ("DequantizeLinear", ["q", "s", "z"], "d", {}), ("Softmax", ["d"], "p", {"axis": 1}),
          ("QuantizeLinear", ["p", "t", "u"], "r", {}), ("DequantizeLinear", ["r", "t", "u"], "y", {}))]
info = lambda name: helper.make_tensor_value_info(name, 1, [64, 8])
g = helper.make_graph(nodes, "g", [info("x")], [info("y")], [t("s", 0.05, "f4"), t("z", 128, "u1"), t("t", 1 / 255, "f4"), t("u", 0, "u1")])
m = helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)])
m.ir_version = 8
onnx.save(m, os.environ["onnx_folder"] + "/softmax.onnx")
P
        node tools/onnx_ways.js $out/softmax.onnx 64 8 > $out/ways
        awk '$1 == "-1:" && $2 > 0 { low = 1 } $1 != "-1:" && $1 != "0:" { other = 1 } END { exit !low || other }' $out/ways
        verdict $? "ONNX Runtime's integer Softmax differs from its own in floats by a step" "$(tr '\n' ' ' < $out/ways)"
    fi
fi

# ---- channels equalized ----
if ! stage equal; then :
elif [ -z "$onnx" ]; then echo "skip equalized channels: $no_onnx"
else
    cases onnx_quantize $out/equal ${SEED:-1} ${EQUAL_GRAPHS:-250} equal && $out/onnx_quantize equal $out/equal > $out/found
    verdict $? "channels equalized: the same bits in floats, and finer by a bit in 8: $(sed -n 's/^# //p' $out/found)" "$(head -n 1 $out/found)"
fi

# ---- reluize --int8 ----
stage files || exit $bad
$CC -std=c99 -O1 $WARNINGS tools/onnx_nets.c $PARTS_FOLDER/data.o $PARTS_FOLDER/onnx_out.o $library -o $out/onnx_nets || exit 1
mkdir -p $out/given
$out/onnx_nets $out/given > $out/given.list
three_classes 400 > $out/table.csv

# convert NAME [OPTION...]: converts a file to NAME.relu.onnx and NAME.8.onnx with a report
convert()
{
    name=$1 model=$2
    shift 2
    rm -f $out/$name.relu.onnx $out/$name.8.onnx $out/$name.json
    $out/reluize --quiet $model -o $out/$name.relu.onnx --int8 $out/$name.8.onnx --report $out/$name.json "$@" > $out/$name.text 2> $out/stderr
}
convert table $out/given/mlp_lambda.onnx --data $out/table.csv --epochs 20 --rate 0.01
verdict $? "reluize --int8 runs" "$(tail -n 1 $out/stderr)"
score=$(sed -n 's/.*"int8": {"score": \([0-9.]*\),.*/\1/p' $out/table.json)
[ "$score" = 100 ] && grep -q QuantizeLinear $out/table.8.onnx && ! grep -q QuantizeLinear $out/table.relu.onnx
verdict $? "a second file, its score in the report" "score: $score"
grep -q '^before, in 8 bits ' $out/table.text && grep -q '^in 8 bits ' $out/table.text &&
    [ $(grep -o '"how": ' $out/table.json | wc -l) = 10 ] && grep -q '^In 8 bits, KL, from the original in floats: the original [0-9.e-]*, the converted' $out/table.text
verdict $? "the report has both networks in 8 bits, and five ways of each"
if [ -n "$runtime" ]; then
    node tools/onnx_table.js $out/table.8.onnx $out/table.csv > $out/right
    [ "$(cat $out/right)" = "80 of 80" ]
    verdict $? "ONNX Runtime has the same score" "$(cat $out/right)"
    $out/reluize --quiet $out/given/mlp_lambda.onnx --data $out/table.csv -o $out/before.relu.onnx --int8-before $out/before.8.onnx \
        --report $out/before.json > $out/before.text 2> $out/stderr
    verdict $? "reluize --int8-before runs" "$(tail -n 1 $out/stderr)"
    node tools/onnx_table.js $out/before.8.onnx $out/table.csv > $out/right
    score=$(sed -n 's/.*"before_8": {"score": \([0-9.]*\),.*/\1/p' $out/before.json)
    [ "$(awk -v s=$score '{ exit !(s == 100 * $1 / $3) }' $out/right; echo $?)" = 0 ]
    verdict $? "the original in 8 bits has the score of the report there" "$(cat $out/right), the report $score"
else echo "skip ONNX Runtime has the same score: $no_runtime"; fi

if [ -n "$onnx" ]; then
    $onnx - $out << 'P'
import sys, warnings
import numpy as np
for old, kind in (("float", float), ("int", int), ("bool", bool), ("object", object)): setattr(np, old, kind)
import onnx
from onnx import helper, numpy_helper
out, n = sys.argv[1], np.random.default_rng(3)
t = lambda name, a, kind="f4": numpy_helper.from_array(np.asarray(a).astype(kind), name)
info = lambda name, shape: helper.make_tensor_value_info(name, 1, shape)
def save(name, nodes, inits, x, ys, opset):
    m = helper.make_model(helper.make_graph(nodes, "g", [x], ys, inits), opset_imports=[helper.make_opsetid("", opset)])
    m.ir_version = 8
    onnx.save(m, f"{out}/{name}.onnx")
# two outputs, one of which a layer reads as well; an open batch
save("two", [helper.make_node("Gemm", ["in", "w", "b"], ["h"]), helper.make_node("Sigmoid", ["h"], ["s"]),
             helper.make_node("Mul", ["h", "s"], ["features"]), helper.make_node("Gemm", ["features", "v", "c"], ["classes"])],
     [t("w", n.normal(size=(20, 16)) / 4), t("b", n.normal(size=16)), t("v", n.normal(size=(16, 3)) / 4), t("c", np.zeros(3))],
     info("in", ["batch", 20]), [info("features", ["batch", 16]), info("classes", ["batch", 3])], 17)
# ELU between layers of 256
save("policy", [helper.make_node("Gemm", ["x", "w", "b"], ["h"]), helper.make_node("Elu", ["h"], ["e"]),
                helper.make_node("Gemm", ["e", "u", "d"], ["g"]), helper.make_node("Elu", ["g"], ["f"]),
                helper.make_node("Gemm", ["f", "v", "c"], ["y"])],
     [t("w", n.normal(size=(20, 256)) / 4), t("b", n.normal(size=256)), t("u", n.normal(size=(256, 256)) / 16), t("d", n.normal(size=256)),
      t("v", n.normal(size=(256, 3)) / 16), t("c", np.zeros(3))], info("x", [1, 20]), [info("y", [1, 3])], 17)
# opset 11, which has no scales by channel: with operators that mean the same in opset 13, and with one that is written otherwise
nodes = [helper.make_node("Reshape", ["x", "s"], ["i"]), helper.make_node("Conv", ["i", "w"], ["h"]), helper.make_node("Sigmoid", ["h"], ["g"]),
         helper.make_node("Mul", ["h", "g"], ["m"]), helper.make_node("Conv", ["m", "u"], ["k"]), helper.make_node("GlobalAveragePool", ["k"], ["p"])]
inits = [t("s", [-1, 1, 4, 5], "i8"), t("w", n.normal(size=(8, 1, 2, 2))), t("u", n.normal(size=(3, 8, 2, 2)) / 4)]
save("old", nodes + [helper.make_node("Flatten", ["p"], ["y"])], inits, info("x", ["n", 20]), [info("y", ["n", 3])], 11)
# the same between layers of 12, with more than eight values
deep, weights, last = [], [], "x"
for k in range(6):
    weights += [t(f"w{k}", n.normal(size=(12 if k else 20, 12)) / 3), t(f"b{k}", n.normal(size=12))]
    deep += [helper.make_node("Gemm", [last, f"w{k}", f"b{k}"], [f"h{k}"]), helper.make_node("Elu", [f"h{k}"], [f"e{k}"])]
    last = f"e{k}"
save("deep", deep + [helper.make_node("Gemm", [last, "v", "c"], ["y"])], weights + [t("v", n.normal(size=(12, 3))), t("c", np.zeros(3))],
     info("x", ["n", 20]), [info("y", ["n", 3])], 17)
# 8 bits in the file, and operators without a form in 8 bits, between layers
grid = [t("s", 0.05, "f4"), t("z", 128, "u1")]
pair = lambda v: [helper.make_node("QuantizeLinear", [v, "s", "z"], [v + "_q"]), helper.make_node("DequantizeLinear", [v + "_q", "s", "z"], [v + "_d"])]
save("mixed", pair("x") + [helper.make_node("Gemm", ["x_d", "w", "b"], ["h"])] + pair("h") +
     [helper.make_node("Sigmoid", ["h_d"], ["g"]), helper.make_node("Mul", ["h_d", "g"], ["m"]), helper.make_node("Gemm", ["m", "u"], ["k"]),
      helper.make_node("LayerNormalization", ["k", "one", "nil"], ["l"]), helper.make_node("Unsqueeze", ["l", "axis"], ["t"]),
      helper.make_node("LSTM", ["t", "lw", "lr"], ["r"], hidden_size=16), helper.make_node("Reshape", ["r", "image"], ["i"]),
      helper.make_node("Resize", ["i", "", "twice"], ["c"], mode="cubic"), helper.make_node("Flatten", ["c"], ["f"]),
      helper.make_node("Gemm", ["f", "v", "d"], ["y"])],
     grid + [t("w", n.normal(size=(20, 16)) / 4), t("b", n.normal(size=16)), t("u", n.normal(size=(16, 16)) / 4), t("one", np.ones(16)),
     t("nil", np.zeros(16)), t("axis", [0], "i8"), t("lw", n.normal(size=(1, 64, 16)) / 4), t("lr", n.normal(size=(1, 64, 16)) / 4),
     t("image", [-1, 1, 4, 4], "i8"), t("twice", [1, 1, 2, 2]), t("v", n.normal(size=(64, 3)) / 4), t("d", np.zeros(3))],
     info("x", ["n", 20]), [info("y", ["n", 3])], 17)
# a bias behind its matrix, and a normalisation of a layer that makes the network's output
save("behind", [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Add", ["h", "b"], ["a"]), helper.make_node("Relu", ["a"], ["r"]),
                helper.make_node("Gemm", ["r", "v", "c"], ["k"]), helper.make_node("BatchNormalization", ["k", "g", "s", "m", "d"], ["y"])],
     [t("w", n.normal(size=(20, 16)) / 4), t("b", n.normal(size=16)), t("v", n.normal(size=(16, 3)) / 4), t("c", n.normal(size=3))] +
     [t(name, 0.5 + n.random(3)) for name in "gsmd"], info("x", ["n", 20]), [info("y", ["n", 3])], 17)
# opset 21, which has int4, with an odd number of weights
save("odd", [helper.make_node("Gemm", ["x", "w"], ["h"]), helper.make_node("Gemm", ["h", "v"], ["y"])],
     [t("w", n.normal(size=(20, 9)) / 4), t("v", n.normal(size=(9, 3)))], info("x", ["n", 20]), [info("y", ["n", 3])], 21)
save("squeeze", nodes + [helper.make_node("Squeeze", ["p"], ["y"], axes=[2, 3])], inits, info("x", ["n", 20]), [info("y", ["n", 3])], 11)
# values of different ranges that are moved together
save("moves", [helper.make_node("Reshape", ["x", "s"], ["i"]), helper.make_node("Conv", ["i", "w"], ["a"]), helper.make_node("Conv", ["i", "w2"], ["b"]),
               helper.make_node("Concat", ["b", "a"], ["j"], axis=1), helper.make_node("Concat", ["a", "j"], ["k"], axis=1),
               helper.make_node("MaxPool", ["k"], ["m"], kernel_shape=[2, 2]), helper.make_node("Flatten", ["m"], ["f"]), helper.make_node("Gemm", ["f", "v"], ["y"])],
     [t("s", [-1, 1, 4, 5], "i8"), t("w", n.normal(size=(4, 1, 2, 2))), t("w2", 9 * n.normal(size=(3, 1, 2, 2))), t("v", n.normal(size=(66, 3)))],
     info("x", ["n", 20]), [info("y", ["n", 3])], 17)
# biases that 32 bits could not hold with the scale of their sums
save("far", [helper.make_node("Gemm", ["x", "w", "b"], ["y"])], [t("w", n.normal(size=(20, 3)) / 1000), t("b", [-1e9, 1e9, 0])],
     info("x", ["n", 20]), [info("y", ["n", 3])], 17)
# opset 9, which has no QuantizeLinear, with operators whose attributes are inputs in opset 13
pieces = [helper.make_node("Slice", ["m"], ["m1"], axes=[2], starts=[0], ends=[2]), helper.make_node("Pad", ["m1"], ["m2"], pads=[0, 0, 0, 0, 0, 0, 1, 0], value=0.5),
          helper.make_node("Split", ["m2"], ["a", "b"], axis=1, split=[4, 4]), helper.make_node("Upsample", ["a", "sizes"], ["a2"], mode="nearest"),
          helper.make_node("Upsample", ["b", "sizes"], ["b2"], mode="nearest"), helper.make_node("Concat", ["a2", "b2"], ["c"], axis=1),
          helper.make_node("Conv", ["c", "u"], ["k"]), helper.make_node("Clip", ["k"], ["k2"], min=-1.0, max=2.0), helper.make_node("ReduceSum", ["k2"], ["p"], axes=[2, 3], keepdims=0),
          helper.make_node("Unsqueeze", ["p"], ["p2"], axes=[1]), helper.make_node("Squeeze", ["p2"], ["z"], axes=[1])]
sizes = [t("sizes", [1, 1, 2, 2])]
save("nine", nodes[:4] + pieces + [helper.make_node("Softmax", ["z"], ["y"])], inits + sizes, info("x", ["n", 20]), [info("y", ["n", 3])], 9)
across = nodes[:4] + [helper.make_node("Softmax", ["m"], ["q"], axis=1), helper.make_node("Conv", ["q", "u"], ["k"]), helper.make_node("GlobalAveragePool", ["k"], ["p"]),
                      helper.make_node("Flatten", ["p"], ["y"])]
for opset in 9, 11:
    save(f"across{opset}", across, inits, info("x", ["n", 20]), [info("y", ["n", 3])], opset)
P
    convert two $out/two.onnx --data $out/table.csv --output classes
    verdict $? "a model with two outputs" "$(tail -n 1 $out/stderr)"
    $onnx - $out << 'P'
import sys, onnx
a, b = (onnx.load(f"{sys.argv[1]}/{n}.onnx") for n in ("two", "two.8"))
same = a.graph.input == b.graph.input and a.graph.output == b.graph.output and a.opset_import == b.opset_import
names = {w.name for w in b.graph.initializer}
sys.exit(not (same and not names & {"w", "v", "b", "c"}))
P
    verdict $? "its inputs, outputs, open batch and opset stay, its weights in floats are gone"
    cut -d , -f 1-20 $out/table.csv > $out/inputs.csv
    convert far $out/far.onnx --data $out/inputs.csv --class-axis none
    $onnx -c "
import onnx
from onnx import numpy_helper
g = onnx.load('$out/far.8.onnx').graph
value = {i.name: numpy_helper.to_array(i) for i in g.initializer}
b, scale = next((value[n.input[0]], value[n.input[1]]) for n in g.node if n.op_type == 'DequantizeLinear' and n.input[0] in value and value[n.input[0]].dtype == 'i4')
raise SystemExit(not all(abs(float(b[k]) * float(scale[k]) - w) < 1e3 for k, w in enumerate((-1e9, 1e9, 0))))" 2> $out/stderr
    verdict $? "a bias that is too large for its scale makes the scale larger" "$(tail -n 1 $out/stderr)"
    convert moves $out/moves.onnx --data $out/inputs.csv --class-axis none
    $onnx - $out/moves.8.onnx > $out/right 2> $out/stderr << 'P'
import sys, onnx
from onnx import numpy_helper
g = onnx.load(sys.argv[1]).graph
value = {i.name: numpy_helper.to_array(i) for i in g.initializer}
maker = {o: n for n in g.node for o in n.output}
grids, moves = set(), 0
for n in g.node:
    if n.op_type in ("Concat", "MaxPool", "Flatten"):
        around = [maker[i] for i in n.input] + [r for r in g.node if n.output[0] in r.input]
        assert all(r.op_type in ("QuantizeLinear", "DequantizeLinear") for r in around), n.op_type
        grids |= {(float(value[r.input[1]]), int(value[r.input[2]])) for r in around}
        moves += 1
print(moves, len(grids))
P
    [ "$(cat $out/right)" = "4 1" ]
    verdict $? "what moves elements has one scale and one zero point on all sides" "$(cat $out/right) $(tail -n 1 $out/stderr)"
    for k in 1 2 3; do
        convert policy$k $out/policy.onnx --data $out/inputs.csv --class-axis none --relus $k || bad=1
    done
    one=$(wc -c < $out/policy1.8.onnx) two=$(wc -c < $out/policy2.8.onnx) three=$(wc -c < $out/policy3.8.onnx)
    [ $two -lt $((one * 13 / 10)) ] && [ $three -lt $((one * 13 / 10)) ]
    verdict $? "two and three ReLUs a gate are about as large as one" "$one, $two, $three bytes"
    for name in old squeeze nine across11; do convert $name $out/$name.onnx --data $out/table.csv || bad=1; done
    opsets=$($onnx -c "import onnx; print(*(onnx.load(f'$out/{n}.8.onnx').opset_import[0].version for n in ('old', 'squeeze', 'nine', 'across11')))")
    [ "$opsets" = "13 13 13 11" ] && grep -q 'in 8 bits: the opset is 13, it was 11' $out/squeeze.text && ! grep -q 'the opset is' $out/across11.text
    verdict $? "an opset is raised where all operators can be written in the newer one" "$opsets"
    $out/reluize $out/across9.onnx --data $out/table.csv -o $out/no.onnx --int8 $out/no8.onnx > $out/stdout 2> $out/stderr
    [ $? = 1 ] && grep -q "QuantizeLinear begins with opset 10, and node '' (Softmax, opset 9) has no form in opset 13" $out/stderr && [ ! -e $out/no8.onnx ]
    verdict $? "an operator that keeps a file from having 8 bits is named" "$(tail -n 1 $out/stderr)"
    if [ -n "$runtime" ]; then
        for name in two old squeeze nine; do
            node tools/onnx_table.js $out/$name.8.onnx $out/table.csv > $out/right 2> $out/stderr
            verdict $? "ONNX Runtime takes $name.8.onnx" "$(tail -n 1 $out/stderr)"
        done
    else echo "skip ONNX Runtime takes them: $no_runtime"; fi
    convert mixed $out/mixed.onnx --data $out/table.csv
    $onnx -c "
import onnx
a, b = (onnx.load(f'$out/{n}.onnx') for n in ('mixed', 'mixed.8'))
kinds = lambda m: [n.op_type for n in m.graph.node]
kept = lambda m: {n.name or n.output[0]: (n.op_type, list(n.input)) for n in m.graph.node if n.output[0] in ('x_q', 'x_d', 'h', 'h_q', 'h_d', 'r')}
into = {o: n.op_type for n in b.graph.node for o in n.output}
last = [n for n in b.graph.node if n.output[0] == 'y'][0]
raise SystemExit(not (kept(a) == kept(b) and len(kept(a)) == 6 and into[last.input[0]] == into[last.input[1]] == 'DequantizeLinear'
                      and all(kinds(b).count(k) == 1 for k in ('LSTM', 'LayerNormalization', 'Resize'))))"
    verdict $? "beside operators that have 8 bits in the file, or no form in 8 bits, the others are quantized" "$(tail -n 1 $out/stderr)"
    [ $(grep -c 'in 8 bits: 1 \(LSTM\|LayerNormalization\|Resize\), .* stays as before: it has no form in 8 bits' $out/mixed.text) = 3 ] &&
        grep -q 'in 8 bits: .*Gemm, .* as before: the file has 8 bits before or behind it' $out/mixed.text
    verdict $? "and those are named" "$(grep 'in 8 bits: ' $out/mixed.text | tail -n 1)"
    if [ -n "$runtime" ]; then
        node tools/onnx_table.js $out/mixed.8.onnx $out/table.csv > $out/right 2> $out/stderr
        verdict $? "ONNX Runtime takes mixed.8.onnx" "$(tail -n 1 $out/stderr)"
    fi
    convert behind $out/behind.onnx --data $out/inputs.csv --class-axis none
    $onnx - $out << 'P' 2> $out/stderr
import sys
import numpy as np
import onnx
m = onnx.load(sys.argv[1] + "/behind.8.onnx")
maker = {o: n for n in m.graph.node for o in n.output}
add = [n for n in m.graph.node if n.op_type == "Add"]
assert len(add) == 1 and maker[add[0].input[0]].op_type == "MatMul", "the bias of MatMul"
assert maker["y"].op_type == "Gemm" and all(n.op_type != "BatchNormalization" for n in m.graph.node), "the normalisation"
np.save(sys.argv[1] + "/behind.x.npy", np.random.default_rng(2).random((50, 20), "f4"))
P
    verdict $? "a bias behind a matrix belongs to it, and a normalisation behind the last one" "$(tail -n 1 $out/stderr)"
    if [ -n "$runtime" ]; then
        for file in behind behind.8; do
            node tools/onnx_runtime_run.js $out/$file.onnx --input x=$out/behind.x.npy --output y=$out/$file.y.npy 2> $out/stderr
        done
        $onnx -c "
import numpy as np
a, b = np.load('$out/behind.y.npy'), np.load('$out/behind.8.y.npy')
assert a.shape == b.shape and abs(a - b).max() < 0.03 * abs(a).max(), abs(a - b).max() / abs(a).max()" 2>> $out/stderr
        verdict $? "and ONNX Runtime computes with them what it does in floats" "$(tail -n 1 $out/stderr)"
    fi
    convert deep $out/deep.onnx --data $out/inputs.csv --class-axis none
    [ $(grep -o '"how": ' $out/deep.json | wc -l) = 11 ] && grep -q '"how": "[a-z ,G]*, 1 in floats"' $out/deep.json
    verdict $? "of more than eight values, one is tried in floats" "$(tail -n 1 $out/stderr)"
    convert narrow $out/policy.onnx --data $out/inputs.csv --class-axis none --bits 4
    $onnx -c "
import onnx, numpy as np
from onnx import numpy_helper
w = [numpy_helper.to_array(i) for i in onnx.load('$out/narrow.8.onnx').graph.initializer if i.data_type == 3 and len(i.dims) == 2]
raise SystemExit(not (len(w) == 3 and all(abs(x.astype(int)).max() <= 7 for x in w)))"
    verdict $? "--bits 4: weights from -7 to 7"
    convert odd $out/odd.onnx --data $out/inputs.csv --class-axis none --bits 4
    $onnx - $out << 'P'
import sys
import numpy as np
import onnx
from onnx import numpy_helper
out = sys.argv[1]
g = onnx.load(out + "/odd.8.onnx").graph
constant, kept = {}, {}
for i in g.initializer:
    if i.data_type == 22:
        codes = np.frombuffer(i.raw_data, np.uint8) if i.raw_data else np.array(i.int32_data, np.uint8)
        both = np.stack([codes & 15, codes >> 4], 1).reshape(-1)[:np.prod(i.dims, dtype=int)].astype(int)
        constant[i.name] = np.where(both > 7, both - 16, both).reshape(i.dims)
        kept[i.name] = len(codes)
    else:
        constant[i.name] = numpy_helper.to_array(i)
x = np.random.default_rng(1).normal(size=(50, 20)).astype("f4")
np.save(out + "/odd.x.npy", x)
value = dict(constant, x=x)
for n in g.node:
    a = [value[i] for i in n.input]
    axis = next((b.i for b in n.attribute if b.name == "axis"), 1)
    if n.op_type == "QuantizeLinear":
        y = np.clip(np.rint(a[0] / a[1]) + a[2], 0, 255)
    elif n.op_type == "DequantizeLinear":
        by = [c.reshape([-1 if d == axis else 1 for d in range(a[0].ndim)]) if c.ndim else c for c in a[1:]]
        y = (a[0] - (by[1].astype(float) if len(by) > 1 else 0)) * by[0]
    else:
        assert n.op_type == "Gemm"
        y = a[0] @ a[1] + (a[2] if len(a) > 2 else 0)
    value[n.output[0]] = y
np.save(out + "/odd.y.npy", value["y"].astype("f4"))
sys.exit(not (sorted(kept.values()) [-2:] == [14, 90] and max(abs(constant[k]).max() for k in kept) <= 7))
P
    verdict $? "--bits 4 in opset 21: two weights a byte, also of an odd number"
    if [ -n "$runtime" ]; then
        node tools/onnx_runtime_run.js $out/odd.8.onnx --input x=$out/odd.x.npy --output y=$out/odd.o.npy 2> $out/stderr &&
            $onnx -c "
import numpy as np
a, b = np.load('$out/odd.y.npy'), np.load('$out/odd.o.npy')
raise SystemExit(not (a.shape == b.shape and (abs(a - b) <= 1e-5 * abs(a).max()).mean() > 0.97 and abs(a - b).max() < 0.1 * abs(a).max()))"
        verdict $? "ONNX Runtime reads the weights that NumPy reads" "$(tail -n 1 $out/stderr)"
    fi
else echo "skip outputs, sizes, opsets and --bits: $no_onnx"; fi
$out/reluize $out/given/mlp_lambda.onnx --data $out/table.csv -o $out/no.onnx --bits 5 > $out/stdout 2> $out/stderr
[ $? = 2 ] && grep -q -- '--bits 5: expected 8 or 4' $out/stderr && [ ! -e $out/no.onnx ]
verdict $? "--bits 5 is refused" "$(tail -n 1 $out/stderr)"

# a quantized file as a model, whole and damaged
convert twice $out/table.8.onnx --data $out/table.csv
verdict $? "a quantized file as a model has its 8 bits" "$(tail -n 1 $out/stderr)"
cmp -s $out/table.8.onnx $out/twice.8.onnx
verdict $? "and is written as it is"
size=$(wc -c < $out/table.8.onnx)
for cut in $((size - 1)) $((size / 2)) 1000 100 9 1 0; do
    head -c $cut $out/table.8.onnx > $out/cut.onnx
    rm -f $out/no.onnx
    $out/reluize --quiet $out/cut.onnx --data $out/table.csv -o $out/no.onnx --int8 $out/no8.onnx > $out/stdout 2> $out/stderr
    [ $? = 1 ] && [ $(wc -l < $out/stderr) = 1 ] && [ ! -s $out/stdout ] && [ ! -e $out/no.onnx ] && [ ! -e $out/no8.onnx ]
    verdict $? "a quantized file as a model, $cut of $size bytes, is refused in one line" "$(tail -n 1 $out/stderr)"
done
exit $bad
