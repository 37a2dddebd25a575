# SPDX-License-Identifier: MIT-0
# test_reluize_c.sh: reluize --c8 --h writes a C file that compiles, runs and gives other integers for other inputs; a name that no
# function may have is refused in one line, and nothing is written.
CC=${CC:-cc}
out=build/reluize_c
mkdir -p $out
. tools/verdict.sh
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
library="${IMPLEMENTATION:-tools/lgelu.c} -lm"
$CC $RELUIZE $library -o $out/reluize || exit 1
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
