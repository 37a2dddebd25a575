# SPDX-License-Identifier: MIT-0
# test_reluize_c.sh: reluize --c8 --h writes a C file that compiles, runs and gives other integers for other inputs; a name that no
# function may have is refused in one line, and nothing is written. With --fix, a network with nodes If (tools/reluize_branches.py) is
# converted in the branch that is taken, and its C files have the bits of what is written, and its integers.
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
# --fix: gates in the branch that is taken, whose nodes stand in place of the If, and C files of it
onnx=$(python_with onnx)
[ -n "$onnx" ] || { echo "skip reluize --fix: $no_onnx"; exit $bad; }
$onnx tools/reluize_branches.py $out || exit 1
$CC $PARTS_FOLDER/onnx_run_main.o $PARTS_FOLDER/onnx_program.o $(echo $RELUIZE | tr ' ' '\n' | grep -e '/onnx_run' -e int8_product -e int8_planes -e onnx_graph -e npy.o -e output.o) \
    $library -o $out/onnx_run || exit 1
cat > $out/use_rate.c << 'END'
#include "rate.h"
#include "rate8.h"
#include <math.h>
#include "tools/npy_floats.h"
#include <string.h>
/* X Y Y8: an input, and the outputs of both files; 0: the C files have them, 3: the one in floats has others */
int main(int argc, char **argv)
{
    float x[rate_inputs], y[rate_outputs], y8[rate_outputs], right[rate_outputs], right8[rate_outputs];
    uint8_t q[rate_inputs];
    size_t k;
    if (argc != 4 || floats(argv[1], x, rate_inputs) || floats(argv[2], right, rate_outputs) || floats(argv[3], right8, rate_outputs))
        return 2;
    rate(y, x);
    if (memcmp(y, right, sizeof y))
        return 3;
    for (k = 0; k < rate_inputs; k++)
        q[k] = (uint8_t)fmin(fmax(rint((double)x[k] / (double)rate8_X_SCALE) + rate8_X_ZERO, 0), 255);
    rate8(y8, q);
    return memcmp(y8, right8, sizeof y8) ? 4 : 0;
}
END
for rate in 16000 8000; do
    rm -f $out/rate.c $out/rate8.c
    $out/reluize --quiet $out/rate.onnx --data $out/x.npy --fix sr=$rate -o $out/rate_relu.onnx --int8 $out/rate_eight.onnx --c $out/rate.c --c8 $out/rate8.c --h > $out/stdout 2> $out/stderr &&
        grep -q '^Inputs of --fix are constants: 1. Branches that stand in place of nodes If: 1.$' $out/stdout && grep -q '^Gates: 1 replaced by 1 ReLU' $out/stdout &&
        $out/onnx_run $out/rate_relu.onnx --input x=$out/one.npy --output y=$out/y$rate.npy 2> $out/stderr && $out/onnx_run $out/rate_eight.onnx --input x=$out/one.npy --output y=$out/eight.npy 2> $out/stderr &&
        $CC -std=c99 -O1 $WARNINGS -I. $out/use_rate.c $out/rate.c $out/rate8.c -lm -o $out/use_rate && $out/use_rate $out/one.npy $out/y$rate.npy $out/eight.npy
    verdict $? "reluize --fix sr=$rate: the gate of this branch, and C files of it" "$(cat $out/stderr; grep Gates $out/stdout)"
done
$out/use_rate $out/one.npy $out/y16000.npy $out/eight.npy
[ $? = 3 ]
verdict $? 'the C file of the other rate computes something else'
# refused TEXT OPTION...: reluize ends with one line that has this text, and writes nothing
refused()
{
    text=$1
    shift
    rm -f $out/no.onnx $out/no.c
    $out/reluize --quiet $out/rate.onnx --data x=$out/x.npy -o $out/no.onnx "$@" > $out/stdout 2> $out/stderr
    [ $? != 0 ] && [ $(wc -l < $out/stderr) = 1 ] && grep -q -e "$text" $out/stderr && [ ! -e $out/no.onnx ] && [ ! -e $out/no.c ]
    verdict $? "reluize $(echo $* | sed "s#$out/##g") is refused" "$(cat $out/stderr)"
}
refused "node 'rate' (If)" --data sr=$out/rate.npy --c $out/no.c
refused "the model has no such input" --fix rate=1
refused "expected a number" --fix sr=fast
refused "expected NAME=NUMBER" --fix sr
refused "there is --fix sr=1 already" --fix sr=1 --fix sr=2
refused "sr" --fix sr=16000 --data sr=$out/rate.npy
exit $bad
