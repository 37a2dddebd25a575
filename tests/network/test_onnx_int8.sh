# SPDX-License-Identifier: MIT-0
# test_onnx_int8.sh: quantized networks as ONNX files with QuantizeLinear and DequantizeLinear, judged by onnx.checker
# (Debian: python3-onnx) and by ONNX Runtime (as for test_onnx.sh), whose integers are compared layer by layer with ours; and
# reluize --int8.
CC=${CC:-cc}
out=build/onnx_int8
mkdir -p $out/nets
. tools/verdict.sh
onnx=$(python_with onnx)
onnx_runtime && runtime=yes || runtime=
OMP_NUM_THREADS=1
export OMP_NUM_THREADS

library="${IMPLEMENTATION:-tools/lgelu.c} -lm"
$CC -std=c99 -O1 $WARNINGS tools/onnx_int8.c $PARTS_FOLDER/int8.o $PARTS_FOLDER/int8_product.o $PARTS_FOLDER/onnx_out.o $library -o $out/onnx_int8 || exit 1

$CC $RELUIZE $library -o $out/reluize || exit 1

$out/onnx_int8 $out/nets > $out/list
verdict $? "$(wc -l < $out/list) quantized networks become ONNX files"
if [ -n "$onnx" ]; then
    $onnx tools/onnx_check.py $out/list $out/nets && $onnx tools/onnx_steps.py $out/list $out/nets || bad=1
else echo "skip every file passes onnx.checker: $no_onnx"; fi
if [ -z "$runtime" ]; then echo "skip ONNX Runtime's whole numbers: $no_runtime"
else
    node tools/onnx_int8.js $out/list $out/nets outside || bad=1
    if [ -n "$onnx" ]; then node tools/onnx_int8.js $out/list $out/nets inside || bad=1
    else echo "skip ONNX Runtime's whole numbers layer by layer: $no_onnx"; fi
fi

# reluize: a GELU network to ReLU, and that to whole numbers
$CC -std=c99 -O1 $WARNINGS tools/onnx_nets.c $PARTS_FOLDER/data.o $PARTS_FOLDER/onnx_out.o $library -o $out/onnx_nets || exit 1
mkdir -p $out/given
$out/onnx_nets $out/given > $out/given.list
three_classes 400 > $out/table.csv
rm -f $out/relu.onnx $out/relu8.onnx
$out/reluize --quiet $out/given/mlp_lambda.onnx --data $out/table.csv -o $out/relu.onnx --int8 $out/relu8.onnx --epochs 20 --rate 0.01 \
    --report $out/report.json > $out/stdout 2> $out/stderr
verdict $? "reluize --int8 runs" "$(tail -n 1 $out/stderr)"
score=$(sed -n 's/.*"int8": {"score": \([0-9.]*\),.*/\1/p' $out/report.json)
[ "$score" = 100 ] && grep -q QuantizeLinear $out/relu8.onnx && ! grep -q QuantizeLinear $out/relu.onnx
verdict $? "reluize --int8: a second file, its score in the report" "score: $score"
if [ -n "$runtime" ]; then
    node tools/onnx_table.js $out/relu8.onnx $out/table.csv > $out/right
    [ "$(cat $out/right)" = "80 of 80" ]
    verdict $? "reluize --int8: ONNX Runtime has the same score" "$(cat $out/right)"
else echo "skip reluize --int8: ONNX Runtime has the same score: $no_runtime"; fi
rm -f $out/no.onnx $out/no8.onnx
# of five samples a refit is refused: it has not begun
{ printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 1, 28, 28), }"; head -c 15680 /dev/zero; } > $out/five.npy
$out/reluize --quiet $out/given/vit.onnx --data $out/five.npy -o $out/no.onnx --int8 $out/no8.onnx > $out/stdout 2> $out/stderr
[ $? = 1 ] && grep -q "no8.onnx: int8: layer '.*': .* layers are not supported" $out/stderr && [ $(wc -l < $out/stderr) = 1 ] &&
    [ ! -e $out/no.onnx ] && [ ! -e $out/no8.onnx ]
verdict $? "reluize --int8: a network that can't be quantized is refused before a refit" "$(tail -n 1 $out/stderr)"

# of several outputs, a network of lgelu.h has the one that is scored
if [ -n "$onnx" ]; then
    scored=$($onnx -c "
import onnx
from onnx import helper
m = onnx.load('$out/given/mlp_lambda.onnx')
m.graph.output.insert(0, helper.make_tensor_value_info(m.graph.node[0].output[0], 1, None))
x = m.graph.input[0].name
for node in m.graph.node: node.input[:] = ['x:0' if name == x else name for name in node.input]
m.graph.input[0].name = 'x:0'
onnx.save(m, '$out/two.onnx')
print(m.graph.output[1].name)")
    for epochs in 0 20; do
        rm -f $out/two_relu.onnx $out/two_relu8.onnx $out/report.json
        $out/reluize --quiet $out/two.onnx --data $out/table.csv --output "$scored" -o $out/two_relu.onnx --int8 $out/two_relu8.onnx \
            --epochs $epochs --rate 0.01 --report $out/report.json > $out/stdout 2> $out/stderr
        status=$?
        score=$(sed -n 's/.*"int8": {"score": \([0-9.]*\),.*/\1/p' $out/report.json)
        [ $status = 0 ] && [ -n "$score" ] && grep -q "^--int8: of the 2 outputs, what is written has '$scored' alone" $out/stdout &&
            grep -q "^--int8: the input 'x:0' is called 'x_0' there" $out/stdout
        verdict $? "reluize --int8 of a model with two outputs, $epochs epochs" "status $status, score $score, $(tail -n 1 $out/stderr)"
    done
else echo "skip reluize --int8 of a model with two outputs: $no_onnx"; fi

# a quantized file as a model, whole and damaged
size=$(wc -c < $out/relu8.onnx)
for cut in $size $((size - 1)) $((size / 2)) 1000 100 9 1 0; do
    head -c $cut $out/relu8.onnx > $out/cut.onnx
    rm -f $out/no.onnx
    $out/reluize --quiet $out/cut.onnx --data $out/table.csv -o $out/no.onnx > $out/stdout 2> $out/stderr
    [ $? = 1 ] && [ $(wc -l < $out/stderr) = 1 ] && [ ! -s $out/stdout ] && [ ! -e $out/no.onnx ] &&
        { [ $cut != $size ] || grep -q 'no smooth gate' $out/stderr; }
    verdict $? "a quantized file as a model, $cut of $size bytes, is refused in one line" "$(tail -n 1 $out/stderr)"
done

# reluize --c8: the same whole numbers as a C file, whose main reads bytes
rm -f $out/table_net.c
$out/reluize --quiet $out/given/mlp_lambda.onnx --data $out/table.csv -o $out/relu.onnx --c8 $out/table_net.c > $out/stdout 2> $out/stderr &&
    $CC -std=c99 -O1 $WARNINGS -Dtable_net_MAIN $out/table_net.c -o $out/table_net &&
    head -c 40 /dev/zero | $out/table_net > $out/lines
[ $? = 0 ] && [ $(wc -l < $out/lines) = 2 ]
verdict $? "reluize --c8: a C file that compiles and runs" "$(tail -n 1 $out/stderr)"
for name in 9net.c net net- .c a_.c a-b.c; do
    rm -f $out/no.onnx
    $out/reluize --quiet $out/given/mlp_lambda.onnx --data $out/table.csv -o $out/no.onnx --c8 $out/$name > $out/stdout 2> $out/stderr
    [ $? = 2 ] && [ $(wc -l < $out/stderr) = 1 ] && [ ! -e $out/no.onnx ] && [ ! -e $out/$name ]
    verdict $? "reluize --c8 $name is refused in one line" "$(tail -n 1 $out/stderr)"
done
exit $bad
