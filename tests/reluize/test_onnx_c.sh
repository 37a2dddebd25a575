# SPDX-License-Identifier: MIT-0
# test_onnx_c.sh: ONNX graphs as C files (examples/reluize/passes/onnx_c*.c). Random graphs of the operators that C files have
# (tools/onnx_random.py) have the bits of the evaluator, compiled by gcc, clang and tcc, with and without fma in hardware; the files
# compile as C++ without a warning; networks in 8 bits become files without floats, which differ from the evaluator by at most
# one step of the last grid, counted, and not at all where all biases are integers, too; files of floats have the same bits on
# AArch64 and 32-bit ARM, under emulation; and the program onnx_c refuses what it cannot write with a line, and writes nothing then.
# RANDOM_GRAPHS=N: N graphs for each compiler (100). COMPILERS='tcc gcc': no others. ONLY='gcc -O2': only the runs of that name.
# SEED=N: other graphs. STAGE=NAME: only one part: 'small', 'random', a family such as 'Conv', 'integers', 'integers rows', 'processors', or 'forms'.
CC=${CC:-cc}
out=build/onnx_c
rm -rf $out
mkdir -p $out/files
. tools/verdict.sh
reluize=../examples/reluize
parts="$(built $reluize/ops/*.c $reluize/passes/onnx_c*.c $reluize/onnx/onnx_graph.c $reluize/onnx/npy.c ../examples/common/output.c)"
library="${IMPLEMENTATION:-tools/lgelu.c} -lm"
include=$(for f in common reluize/onnx reluize/ops reluize/passes; do echo -I../examples/$f; done)
$CC -std=c99 -O1 $WARNINGS $include tools/onnx_c_random.c $parts $library -ldl -o $out/onnx_c_random || exit 1
$CC -std=c99 -O1 $include $(built $reluize/app/onnx_c_main.c $reluize/app/onnx_program.c) $parts $library -o $out/onnx_c || exit 1
$CC -std=c99 -O1 $include $(built $reluize/app/onnx_run_main.c $reluize/app/onnx_program.c) $parts $library -o $out/onnx_run || exit 1

# the graphs of test_onnx_c_nets, in floats and in 8 bits
if stage small && command -v tcc > /dev/null; then
    $CC -std=c99 -O1 $WARNINGS $include reluize/test_onnx_c_nets.c $(built $reluize/ops/*.c $reluize/passes/*.c $reluize/onnx/onnx_graph.c) $library \
        -o $out/nets && $out/nets $out/floats $out/bytes || exit 1
    $out/onnx_c_random $out/floats $out/files tcc -shared -fPIC > $out/found 2>&1
    verdict $? "C files of small graphs: $(tail -n 1 $out/found)" "$(grep -v REFUSED $out/found | head -n 1)"
    $out/onnx_c_random --integers 1 $out/bytes $out/files tcc -shared -fPIC > $out/found 2>&1
    verdict $? "C files in 8 bits of small graphs: $(tail -n 1 $out/found)" "$(grep -v -E 'REFUSED|^#|^counts' $out/found | head -n 1)"
fi

# the operators of the tables that onnx_random.py draws
tables=$(grep -ho '{ "[A-Z][A-Za-z]*", *ONNX_C_' $reluize/passes/onnx_c_*.c | sed 's/{ "\(.*\)".*/\1/' | sort -u)
drawn=$(grep -A3 '^@operator' tools/onnx_random.py | grep -o '"[A-Z][A-Za-z]*"' | tr -d '"' | sort -u)
only=$(for op in $tables; do echo "$drawn" | grep -qx "$op" && echo "$op"; done | paste -s -d , -)
onnx=$(python_with onnx)
[ -n "$onnx" ] || { echo "skip random graphs as C files: $no_onnx"; exit $bad; }

wanted() { case " ${COMPILERS:-$1} " in *" $1 "*) ;; *) false ;; esac; }
# why a graph may be refused
reasons='no argument of a C function|depends on the inputs of the network|expected float|not available|is not one of a value of rank'
# random NAME SEED COMPILER...: graphs of this seed
random()
{
    name=$1 seed=$(($2 + ${SEED:-0}))
    shift 2
    stage "${OPERATORS:-random}" && wanted $1 || return
    [ "${ONLY:-$name}" = "$name" ] || return
    command -v $1 > /dev/null || { echo "skip C files of random graphs by $name: $1 is not installed"; return; }
    cases onnx_random $out/cases $seed ${GRAPHS_OF:-${RANDOM_GRAPHS:-100}} --only ${OPERATORS:-$only} --floats 1 --nodes ${NODES:-8} > $out/made &&
        $out/onnx_c_random $out/cases $out/files "$@" -shared -fPIC > $out/found 2>&1
    verdict $? "C files of random graphs${OPERATORS:+ of $OPERATORS} by $name: $(tail -n 1 $out/found)" "$(grep -v REFUSED $out/found | head -n 3 | tr '\n' ' ')"
    ! grep REFUSED $out/found | grep -v -E "$reasons" > $out/refused
    verdict $? "each refusal of a random graph, by $name, names what is missing" "$(head -n 1 $out/refused)"
}
random 'gcc -O2' 1 gcc -std=c99 -O2 $WARNINGS -Werror -Wno-tautological-compare
random 'gcc -O3 with fma, contracted' 2 gcc -O3 -march=native -ffp-contract=fast
random 'clang -O2 with fma' 3 clang -std=c99 -O2 -march=native -Wall -Wextra -Werror -Wno-tautological-compare
random 'clang -O3 with fma, contracted' 6 clang -std=c99 -O3 -march=native -ffp-contract=fast
random 'tcc' 4 tcc
random 'gcc, as for a small processor without a float unit' 6 gcc -std=c99 -O2 -DSOFT_ -DSCALAR_ -DTILE_ROWS_=2 -DTILE_COLUMNS_=4
# families that are a small part of all operators, but most of what people's networks have; the longest code is theirs
for OPERATORS in Conv ConvTranspose MaxPool,AveragePool,GlobalAveragePool,GlobalMaxPool Resize,Upsample Gemm,MatMul LSTM GRU,RNN \
    BatchNormalization,InstanceNormalization,LayerNormalization,LpNormalization,Softmax,LogSoftmax Slice,Concat,Split,Pad,Transpose,Gather \
    GatherElements,GatherND,ScatterND,ScatterElements,ReverseSequence,Tile,Expand,Trilu ReduceMax,ReduceMean,ReduceSum,ArgMax,ArgMin,ReduceProd \
    Clip,Where,Cast,PRelu,HardSigmoid,Equal,Less,And,Not,BatchNormalization; do
    NODES=2 GRAPHS_OF=${FAMILY_GRAPHS:-33} random 'tcc' 7 tcc
done
unset OPERATORS
# what C++20 warns of
enums="-Wdeprecated-enum-enum-conversion -Wdeprecated-enum-float-conversion"
g++ $enums -x c++ -fsyntax-only /dev/null 2> $out/found || enums=
random 'g++' 5 g++ -x c++ -std=c++11 -O1 -Wall -Wextra -Werror $enums -Wno-tautological-compare
[ ! -e $out/found ] || grep REFUSED $out/found | sed "s/node '[^']*'/node/; s/[0-9][0-9]*/N/g" | sort | uniq -c | sort -rn | head -n 5 | sed 's/^ */# /'

# integers NAME SEED LAYERS STEPS COMPILER...: networks in 8 bits (tools/onnx_c_quantized.py) as files without floats, with WITH=floats
# with some nodes in floats, with WITH=rows of matrices, with WITH=whole without biases in floats: there integers are exactly those of the evaluator
integers()
{
    name=$1 seed=$(($2 + ${SEED:-0})) layers=$3 steps=$4
    shift 4
    stage "integers${WITH:+ $WITH}" && wanted $1 || return
    [ "${ONLY:-$name}" = "$name" ] || return
    command -v $1 > /dev/null || { echo "skip C files in 8 bits by $name: $1 is not installed"; return; }
    cases onnx_c_quantized $out/cases $seed ${RANDOM_GRAPHS:-100} $layers $WITH > $out/made 2>&1 &&
        $out/onnx_c_random --integers $steps $out/cases $out/files "$@" -shared -fPIC > $out/found 2>&1
    verdict $? "C files in 8 bits of networks of $layers layers by $name: $(tail -n 2 $out/found | tr '\n' ' ')" "$(grep -v '^counts' $out/found | head -n 3 | tr '\n' ' ')"
    # A sum or difference of two values is computed in floats where more than 64 of its 65,536 pairs of bytes are rounded in a way of
    # their own (onnx_c_pairs.c): one in some sixty. Nothing else is. A writer that takes floats for an Add has 78 of a hundred.
    floats=$(grep -c '^# case [0-9]*: floats' $out/found)
    grep -q ' 0 refused,' $out/found && { [ "$WITH" = floats ] || [ $((floats * 10)) -le $([ "$WITH" = rows ] && echo 0 || echo ${RANDOM_GRAPHS:-100}) ]; }
    verdict $? "none of them by $name is refused, and of ${RANDOM_GRAPHS:-100} at most $([ "$WITH" = rows ] && echo 0 || echo 'a tenth') have nodes in floats" "$floats have; $(grep -m1 REFUSED $out/found)"
}
# -mgeneral-regs-only is refused where a float is computed
case $(uname -m) in x86_64 | aarch64) general=-mgeneral-regs-only ;; *) general= ;; esac
integers "gcc, without float registers" 1 1 1 gcc -std=c99 -O2 $general $WARNINGS -Werror
integers clang 2 1 1 clang -std=c99 -O1 -Wall -Wextra -Werror
WITH=rows integers 'gcc, matrices' 10 1 1 gcc -std=c99 -O2 $WARNINGS -Werror
integers tcc 3 1 1 tcc
WITH=floats integers tcc 8 1 10 tcc
WITH=rows integers tcc 9 1 1 tcc
integers g++ 4 6 60 g++ -x c++ -std=c++11 -O1 -Wall -Wextra -Werror $enums
WITH=whole integers 'gcc, exactly' 7 10 0 gcc -std=c99 -O2
WITH=whole integers 'tcc, exactly' 11 20 0 tcc
WITH=floats integers 'gcc, some nodes in floats' 5 1 10 gcc -std=c99 -O2 $WARNINGS -Werror
WITH=floats integers 'g++ with fma, some nodes in floats' 6 6 60 g++ -x c++ -O2 -march=native

# files of floats on another processor, under emulation: the bits that the evaluator has here
cat > $out/use_net.c << 'END'
#include "net.h"
#include "tools/npy_floats.h"
#include <string.h>
int main(int argc, char **argv)
{
    static float x[net_inputs], y[net_outputs], right[net_outputs];
    if (argc < 3 || floats(argv[1], x, net_inputs) || floats(argv[2], right, net_outputs))
        return 2;
    x[0] += (float)(argc - 3); /* with a further argument, another input */
    net(y, x);
    return memcmp(y, right, sizeof y) != 0;
}
END
dir=$out
. tools/processors.sh
# processor TARGET NAME FLAGS...: C files of the networks of tools/onnx_c_processors.py
processor()
{
    stage processors || return
    target $1
    name=$2
    shift 2
    why=$(able $compile)
    if [ "$why" ]; then echo "skip C files of floats on $name: $why"; return; fi
    right=0 moved=0 said=
    for net in $nets; do
        $out/onnx_c $out/$net.onnx -o $out/net.c --header $out/net.h > $out/said 2>&1 && $compile "$@" -I. $out/use_net.c $out/net.c -lm -o $out/use_net >> $out/said 2>&1 &&
            $runner $out/use_net $out/$net.npy $out/$net.right.npy && right=$((right + 1)) || said="$said $net $(head -n 1 $out/said)"
        $runner $out/use_net $out/$net.npy $out/$net.right.npy another || moved=$((moved + 1))
    done
    [ "$right $moved" = "$(echo $nets | wc -w) $(echo $nets | wc -w)" ]
    verdict $? "C files of floats on $name have the evaluator's bits: $right networks" "$said"
}
if stage processors; then
    nets=$($onnx tools/onnx_c_processors.py $out) || exit 1
    for net in $nets; do $out/onnx_run $out/$net.onnx --input x=$out/$net.npy --output y=$out/$net.right.npy || exit 1; done
fi
processor native 'this processor' -O1 $WARNINGS
processor aarch64 'AArch64, gcc -O2' -O2 $WARNINGS
processor aarch64 'AArch64, gcc -O3, contracted' -O3 -ffp-contract=fast
processor aarch64-clang 'AArch64, clang -O2' -O2 -Wall -Wextra
processor arm '32-bit ARM, gcc -O2' -O2

stage forms || exit $bad

# refused MODEL TEXT: onnx_c ends with status 1 and this text, and writes no file
refused()
{
    $out/onnx_c $1 -o $out/refused.c > $out/stdout 2> $out/stderr
    [ $? = 1 ] && [ $(wc -l < $out/stderr) = 1 ] && grep -q "$2" $out/stderr && [ ! -e $out/refused.c ]
    verdict $? "onnx_c refuses $(basename "$1")" "$(cat $out/stderr)"
}
$onnx - $out << 'END' || exit 1
import sys
import onnx
from onnx import TensorProto, helper
def write(name, nodes, inputs, outputs, kind=TensorProto.FLOAT):
    g = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(n, kind, s) for n, s in inputs],
                          [helper.make_tensor_value_info(n, kind, s) for n, s in outputs])
    onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), f"{sys.argv[1]}/{name}.onnx")
write("det", [helper.make_node("Det", ["x"], ["y"], name="d1")], [("x", [2, 2])], [("y", [])])
write("double", [helper.make_node("Relu", ["x"], ["y"])], [("x", [2])], [("y", [2])], TensorProto.DOUBLE)
write("picture", [helper.make_node("Relu", ["x"], ["y"])], [("x", [1, 2, 3, 4])], [("y", [1, 2, 3, 4])])
chain = lambda *ops: [helper.make_node(op, [f"v{k}" if k else "x"], [f"v{k + 1}" if k + 1 < len(ops) else "y"]) for k, op in enumerate(ops)]
write("loop", chain("Abs", "Neg", "Tanh"), [("x", [2, 3])], [("y", [2, 3])])
write("over", chain("Softmax", "Relu", "Softmax"), [("x", [2, 3])], [("y", [2, 3])])
write("narrow", [helper.make_node("Constant", [], ["s"], value_floats=[1.0, 1.0, 0.5, 1.5]), helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear")],
      [("x", [1, 1, 4, 1])], [("y", [1, 1, 2, 1])])
write("relu", [helper.make_node("Relu", ["x"], ["y"])], [("x", ["batch", 3])], [("y", ["batch", 3])])
END
$onnx tools/onnx_c_refused.py $out > $out/forms || exit 1
right=0
while IFS='	' read -r file says; do
    rm -f $out/form.c
    $out/onnx_c $out/$file -o $out/form.c > $out/stdout 2> $out/stderr
    status=$?
    if [ "$says" ]; then
        [ $status = 1 ] && [ $(wc -l < $out/stderr) = 1 ] && grep -q -F "$says" $out/stderr && [ ! -e $out/form.c ]
    else
        [ $status = 0 ] && [ -s $out/form.c ]
    fi && right=$((right + 1)) || verdict 1 "$file: ${says:-it is written}" "$(cat $out/stderr)"
done < $out/forms
[ $right = $(wc -l < $out/forms) ]
verdict $? "$right graphs of one operator are refused by name, or written, where the form is one that C files have"
refused $out/det.onnx "node 'd1' (Det): this operator is not available in C files"
refused $out/double.onnx "'x' is of type double"
refused "$out/relu.onnx --integers" "expected QuantizeLinear and DequantizeLinear"
$out/onnx_c $out/relu.onnx -o $out/main.c 2> $out/stderr
[ $? = 2 ] && grep -q "main.c: expected NAME.c, where NAME is a C identifier" $out/stderr && [ ! -e $out/main.c ]
verdict $? 'a name that C uses is refused' "$(cat $out/stderr)"
$out/onnx_c $out/relu.onnx -o $out/net.c --header $out/net.h --dim batch=2 2> $out/stderr
printf '#include "net.h"\nint main() { float x[net_inputs] = { -1, 2, -3, 4, -5, 6 }, y[net_outputs]; net(y, x); return net_inputs != 6 || !(y[5] > 5) || y[4] < 0 || y[4] > 0; }\n' > $out/use.c
$CC -std=c99 $WARNINGS -Werror $out/use.c $out/net.c -lm -o $out/use && $out/use &&
    { ! command -v g++ > /dev/null || { g++ -std=c++11 -x c++ $out/use.c -x none -c -o $out/use.o && $CC -c $out/net.c -o $out/net.o && g++ $out/use.o $out/net.o -lm -o $out/use && $out/use; }; }
verdict $? 'a file and its header work, from C and from C++' "$(cat $out/stderr)"
$out/onnx_c $out/picture.onnx -o $out/picture.c --header $out/picture.h 2> $out/stderr
printf '#include "picture.h"\nint main(void) { return picture_CHANNELS != 2 || picture_ROWS != 3 || picture_COLUMNS != 4 || picture_AT(2, 1, 1) != 21; }\n' > $out/use.c
$CC -std=c99 $out/use.c $out/picture.c -lm -o $out/use && $out/use
verdict $? 'the header has the sizes of an image and where its pixels are' "$(cat $out/stderr)"
# element-wise neighbours share a loop and need no memory between them; another one writes over the value that it reads, 6 floats
for net in loop over; do $out/onnx_c $out/$net.onnx -o $out/$net.c --header $out/$net.h 2> $out/stderr; done
grep -q 'loop_work = 0' $out/loop.h && [ $(grep -c 'for (' $out/loop.c) = 1 ] && grep -q 'over_work = 24' $out/over.h
verdict $? 'neighbours share a loop, and write over a value that nobody reads afterwards' "$(grep -h _work $out/loop.h $out/over.h | tr '\n' ' ')"
# its last dimension is interpolated, since its scale is 1.5, and keeps its size; then 4 floats become 2
$out/onnx_c $out/narrow.onnx -o $out/narrow.c 2> $out/stderr && grep -q 'narrow_work = 24' $out/narrow.c
verdict $? 'an interpolated dimension that keeps its size has memory, too' "$(cat $out/stderr; grep _work $out/narrow.c)"
# a node If: the branch that is taken where its condition follows from an input that --fix makes a constant, and from shapes
$onnx tools/onnx_c_branches.py $out || exit 1
cat > $out/use_rate.c << 'END'
#include "rate.h"
#include "tools/npy_floats.h"
#include <string.h>
int main(int argc, char **argv)
{
    float x[rate_inputs], a[rate_outputs_0], b[rate_outputs_1], right_a[rate_outputs_0], right_b[rate_outputs_1];
    if (argc != 4 || floats(argv[1], x, rate_inputs) || floats(argv[2], right_a, rate_outputs_0) || floats(argv[3], right_b, rate_outputs_1))
        return 2;
    rate(a, b, x);
    return memcmp(a, right_a, sizeof a) || memcmp(b, right_b, sizeof b);
}
END
for rate in 16000 8000; do
    $out/onnx_run $out/rate.onnx --input x=$out/x.npy --input sr=$out/rate$rate.npy --output a=$out/a$rate.npy --output b=$out/b.npy &&
        $out/onnx_c $out/rate.onnx -o $out/rate.c --header $out/rate.h --fix sr=$rate 2> $out/stderr &&
        $CC -std=c99 -I. $out/use_rate.c $out/rate.c -lm -o $out/use$rate && $out/use$rate $out/x.npy $out/a$rate.npy $out/b.npy
    verdict $? "the branch of a sampling rate of $rate, and those of shapes in it, have the bits of the evaluator" "$(cat $out/stderr)"
done
$out/use8000 $out/x.npy $out/a16000.npy $out/b.npy
[ $? = 1 ]
verdict $? 'the file of the other rate computes something else'
refused $out/rate.onnx "node 'rate' (If): its condition depends on the inputs of the network"
refused $out/data.onnx "node 'rate' (If): its condition depends on the inputs of the network"
refused "$out/rate.onnx --fix sr=fast" "'fast' is no number"
refused "$out/rate.onnx --fix rate=16000" "the model has no such input"
for options in -Ofast -ffast-math -ffinite-math-only -fno-signed-zeros; do
    ! $CC -std=c99 $options -c $out/net.c -o $out/net.o 2> $out/stderr && grep -q 'which changes results' $out/stderr
    verdict $? "a C file refuses $options" "$(head -n 1 $out/stderr)"
done
for options in '' '-o' 'a b -o c.c' "$out/relu.onnx -o $out/p.h" "$out/relu.onnx -o $out/int.c" "$out/relu.onnx -o $out/1.c" "$out/relu.onnx -o $out/x.c --dim other=2" "$out/relu.onnx -o $out/x.c --dim batch=0"; do
    $out/onnx_c $options > $out/stdout 2> $out/stderr
    status=$?
    [ $status = 1 ] || [ $status = 2 ] && [ -s $out/stderr ] && [ ! -e $out/x.c ] && [ ! -e $out/p.h ]
    verdict $? "onnx_c '$(echo $options | sed "s#$out/##g")' is refused" "$(cat $out/stderr)"
done
exit $bad
