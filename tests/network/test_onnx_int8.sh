# SPDX-License-Identifier: MIT-0
# test_onnx_int8.sh: quantized networks as ONNX files with QuantizeLinear and DequantizeLinear, judged by onnx.checker
# (Debian: python3-onnx) and by ONNX Runtime (as for test_onnx.sh), whose integers are compared layer by layer with ours; and
# reluize --c8.
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

# reluize --c8: a GELU network to ReLU, and that to whole numbers as a C file, which a program calls twice
$CC -std=c99 -O1 $WARNINGS tools/onnx_nets.c $PARTS_FOLDER/data.o $PARTS_FOLDER/onnx_out.o $library -o $out/onnx_nets || exit 1
mkdir -p $out/given
$out/onnx_nets $out/given > $out/given.list
three_classes 400 > $out/table.csv
rm -f $out/table_net.c
$out/reluize --quiet $out/given/mlp_lambda.onnx --data $out/table.csv -o $out/relu.onnx --c8 $out/table_net.c --h > $out/stdout 2> $out/stderr
printf '#include "table_net.h"\n#include <stdio.h>\nint main(void) { static uint8_t x[table_net_inputs]; int32_t y[table_net_outputs]; int k; for (k = 0; k < 2; k++) { x[0] = (uint8_t)(100 * k); table_net(y, x); printf("%%ld\\n", (long)y[0]); } return 0; }\n' > $out/twice.c
$CC -std=c99 -O1 $WARNINGS $out/twice.c $out/table_net.c -o $out/table_net && $out/table_net > $out/lines
[ $? = 0 ] && [ $(sort -u $out/lines | wc -l) = 2 ]
verdict $? "reluize --c8: a C file that compiles and runs" "$(tail -n 1 $out/stderr)"
for name in 9net.c net net- .c a_.c a-b.c; do
    rm -f $out/no.onnx
    $out/reluize --quiet $out/given/mlp_lambda.onnx --data $out/table.csv -o $out/no.onnx --c8 $out/$name > $out/stdout 2> $out/stderr
    [ $? = 2 ] && [ $(wc -l < $out/stderr) = 1 ] && [ ! -e $out/no.onnx ] && [ ! -e $out/$name ]
    verdict $? "reluize --c8 $name is refused in one line" "$(tail -n 1 $out/stderr)"
done
exit $bad
