# SPDX-License-Identifier: MIT-0
# test_reluize_relus.sh: several ReLUs a gate in reluize. C files and files in 8 bits of such networks compute what the converted file
# does; a network in a form that they cannot hold is refused with one line; leaky ReLUs by --leaky; what the report says; --kept counts rows, --within stays below what may be lost;
# external data give the same network. NETS='perceptron images' RELUS='1 2': no other C files. STAGE=nets or rest: only this part.
out=build/reluize_relus
. tools/job.sh
onnx=$(python_with onnx)
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
$CC $RELUIZE $IMPLEMENTATION -o $out/reluize -lm || exit 1
$CC $PARTS_FOLDER/onnx_run_main.o $PARTS_FOLDER/onnx_program.o $(echo $RELUIZE | tr ' ' '\n' | grep -e '/onnx_run' -e int8_product -e int8_planes -e onnx_graph -e npy.o -e output.o) $IMPLEMENTATION \
    -o $out/onnx_run -lm || exit 1
if [ -z "$onnx" ]; then echo "skip several ReLUs a gate: $no_onnx"; exit 0; fi
$onnx tools/reluize_relus.py $out || exit 1

# outputs FILE NAME: evaluates a file on the inputs of a network
outputs() { $out/onnx_run $out/$1.onnx --input x=$out/$2.npy --output y=$out/$1.y.npy; }

cat > $out/main.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include NET
#define JOIN(a, b) a##b
#define OF(a, b) JOIN(a, b)
int main(int argc, char **argv)
{
    static float x[OF(NAME, _inputs)], y[OF(NAME, _outputs)];
    FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
    char head[128];
    if (argc != 3 || !in || !out || fread(head, 1, 128, in) != 128)
        return 1;
    while (fread(x, sizeof x, 1, in) == 1) {
        NAME(y, x);
        fwrite(y, sizeof y, 1, out);
    }
    return fclose(out) != 0;
}
C
for name in ${NETS:-perceptron images normalised}; do
    stage nets || break
    for relus in ${RELUS:-1 2 3}; do
        net=${name}$relus
        line=
        [ $relus = 1 ] && line=--line
        $out/reluize $out/$name.onnx --data $out/$name.npy --relus $relus $line -o $out/$net.onnx --c $out/$net.c --c8 $out/${net}_8.c --h \
            --int8 $out/$net.int8.onnx --quiet > $out/stdout 2> $out/stderr
        verdict $? "$name with $relus ReLUs a gate $line is written as C files and in 8 bits" "$(tail -n 1 $out/stderr)" || continue
        outputs $net $name > $out/stdout 2>&1 && outputs $net.int8 $name > $out/stdout 2>&1
        verdict $? "$name: the converted files are evaluated" "$(tail -n 1 $out/stdout)"
        $CC -std=c99 -O1 -DNET="\"$net.h\"" -DNAME=$net $out/main.c $out/$net.c -o $out/$net -lm && $out/$net $out/$name.npy $out/$net.raw
        verdict $? "$name: the C file compiles and runs"
        $onnx -c "
import numpy, sys
numpy.save('$out/$net.c.npy', numpy.fromfile('$out/$net.raw', numpy.float32))"
        said=$($onnx tools/reluize_relus.py $out $net $net.c.npy 1e-5 2>&1)
        verdict $? "$name: the C file computes what the converted file does, to 1e-5 of the largest" "$said"
        said=$($onnx tools/reluize_relus.py $out $net $net.int8.y.npy 0.1 2>&1)
        verdict $? "$name: in 8 bits, to a tenth of the largest" "$said"
        $CC -std=c99 -O1 $WARNINGS -Werror -c $out/${net}_8.c -o $out/eight.o
        verdict $? "$name: the C file in 8 bits compiles"
    done
done

stage rest || exit $bad

$out/reluize $out/external.onnx --data $out/perceptron.npy --relus 2 -o $out/external2.onnx --quiet > $out/stdout 2> $out/stderr
verdict $? "a model with external data is converted" "$(tail -n 1 $out/stderr)"
$out/reluize $out/perceptron.onnx --data $out/perceptron.npy --relus 2 -o $out/internal2.onnx --quiet > $out/stdout 2> $out/stderr
outputs external2 perceptron > $out/stdout 2>&1 && outputs internal2 perceptron > $out/stdout 2>&1 &&
    cmp $out/external2.y.npy $out/internal2.y.npy > $out/stdout 2>&1
verdict $? "external data give the same network" "$(tail -n 1 $out/stdout)"

for relus in 1 3; do
    $out/reluize $out/rows.onnx --data $out/rows.npy --kept 0,0.3 --relus $relus -o $out/rows$relus.onnx --quiet > $out/rows$relus.txt 2> $out/stderr
    verdict $? "rows above a threshold, with $relus ReLUs a gate" "$(tail -n 1 $out/stderr)"
done
# kept FILE: the rows kept, in per mille of those in either
kept() { sed -n 's/.* \([0-9]*\) of \([0-9]*\)  written$/\1 \2/p' $1 | { read -r both either; echo $((1000 * both / either)); }; }
[ "$(kept $out/rows3.txt)" -gt "$(kept $out/rows1.txt)" ]
verdict $? "three ReLUs a gate keep more rows than one" "$(cat $out/rows1.txt $out/rows3.txt)"
outputs rows rows > $out/stdout 2>&1 && outputs rows3 rows > $out/stdout 2>&1
$onnx - $out > $out/counted <<'P'
import sys
import numpy as np
parts = [[np.load(f"{sys.argv[1]}/{name}.y.npy")[first::5, :, 0] > 0.3 for name in ("rows", "rows3")] for first in range(5)]
print(" ".join(f"[{(a & b).sum()} of {(a | b).sum()}]" for a, b in parts))
P
line=$(sed -n 's/.* \([0-9]* of [0-9]*\)  written$/\1/p' $out/rows3.txt)
grep -q -F "[$line]" $out/counted
verdict $? "the rows kept are those that NumPy counts on every fifth sample" "$line, $(cat $out/counted)"
for name in rows fixed; do
    $out/reluize $out/$name.onnx --data $out/rows.npy --kept 0,0.3 --within 0.03 -o $out/within.onnx --quiet > $out/within.txt 2> $out/stderr &&
        grep -q 'Within 0.03: ReLUs and the part of the rows that is lost' $out/within.txt && ! grep -q 'Even' $out/within.txt
    verdict $? "--within with --kept: $name" "$(cat $out/stderr $out/within.txt)"
done
# what choosing FILE.json says: whether no way is nearer on held-out samples than the one that is written; ReLUs, and as matrices
said() { $onnx -c "
import json, sys
r = json.load(open(sys.argv[1]))
ways = {k: w['held'] for k, w in r.items() if isinstance(w, dict) and 'held' in w and k != 'before'}
lines = sum(g['line'] for g in r['gates'])
assert all(ways[r['written']] <= held for held in ways.values()), ways
assert r['relus_written'] == sum(g['relus'] for g in r['gates']) and r['relus_alone'] == r['relus_written'] + 2 * lines, r['relus_alone']
print(len(ways), sum(1 for g in r['gates'] if g['relus']), r['relus_written'], lines, max(g['relus'] for g in r['gates']))" $1; }
for options in '--relus 1' '--line' '--relus 2' '--relus 2 --no-line' '--average 2' '--average 2.5 --relus 3 --no-line'; do
    $out/reluize $out/rows.onnx --data $out/rows.npy --kept 0,0.3 $options -o $out/chosen.onnx --report $out/chosen.json --quiet \
        > $out/chosen.txt 2> $out/stderr && said $out/chosen.json > $out/said 2> $out/stderr
    verdict $? "$options: no way is nearer on held-out samples than the one that is written; its ReLUs are counted" "$(tail -n 1 $out/stderr)"
    read -r ways gates relus lines most < $out/said
    [ $relus = 1 ] && written='by 1 ReLU,' || written="by $relus ReLUs,"
    grep -q "$written" $out/chosen.txt && grep -q 'held-out training samples, .*: \(cold swap\|fitted ReLUs\) ' $out/chosen.txt &&
        case $options in
        '--relus 1') [ $relus = $gates ] && [ $lines = 0 ] ;;
        --line) [ $relus = $gates ] && [ $lines = $gates ] && grep -q "alone these are $((3 * gates)) ReLUs" $out/chosen.txt ;;
        '--relus 2') [ $relus = $((2 * gates)) ] && [ $lines = $gates ] && grep -q "alone these are $((4 * gates)) ReLUs" $out/chosen.txt ;;
        '--relus 2 --no-line') [ $relus = $((2 * gates)) ] && [ $lines = 0 ] && ! grep -q 'alone these are' $out/chosen.txt ;;
        '--average 2') [ $relus = $((2 * gates)) ] ;;
        *) [ $relus = $(((5 * gates + 1) / 2)) ] && [ $most -le 3 ] && [ $lines = 0 ] ;;
        esac
    verdict $? "$options: the report says so" "$(cat $out/said $out/chosen.txt)"
done
code=2 refused '--line and --no-line' $out/reluize $out/rows.onnx --data $out/rows.npy --line --no-line -o $out/no.onnx --quiet
code=2 refused 'average' $out/reluize $out/rows.onnx --data $out/rows.npy --average 3 --relus 2 -o $out/no.onnx --quiet
code=2 refused 'average' $out/reluize $out/rows.onnx --data $out/rows.npy --average 2 --within 0.1 -o $out/no.onnx --quiet
code=1 refused 'column' $out/reluize $out/rows.onnx --data $out/rows.npy --kept 4,0.3 -o $out/no.onnx --quiet
code=2 refused 'COLUMN,THRESHOLD' $out/reluize $out/rows.onnx --data $out/rows.npy --kept 4 -o $out/no.onnx --quiet

# leaky ReLUs: named when they are left, the same function with one ReLU and a line, also as matrices
$out/reluize $out/leaky.onnx --data $out/leaky.npy -o $out/same.onnx --quiet > $out/leaky.txt 2> $out/stderr &&
    grep -q 'leaky ReLUs (2) are piecewise linear: --leaky' $out/leaky.txt && cmp $out/leaky.onnx $out/same.onnx > $out/stdout 2>&1
verdict $? "leaky ReLUs are named when they are left" "$(cat $out/stderr $out/leaky.txt)"
outputs leaky leaky > $out/stdout 2>&1
for options in '--relus 2' "--relus 3 --c $out/leaky_c.c"; do
    $out/reluize $out/leaky.onnx --data $out/leaky.npy --leaky $options -o $out/leaky2.onnx --quiet > $out/leaky.txt 2> $out/stderr &&
        outputs leaky2 leaky > $out/stdout 2>&1 && said=$($onnx tools/reluize_relus.py $out leaky leaky2.y.npy 1e-6 2>&1)
    verdict $? "--leaky $options: the same function" "$(tail -n 1 $out/stderr) $said"
    grep -q '^Gates: 2 replaced by 2 ReLUs, ' $out/leaky.txt
    verdict $? "--leaky $options: its ReLUs are counted" "$(cat $out/leaky.txt)"
done
$out/reluize $out/leaky.onnx --data $out/leaky.npy --leaky -o $out/leaky1.onnx --quiet > $out/leaky.txt 2> $out/stderr &&
    grep -q '^Gates: 2 replaced by 2 ReLUs, ' $out/leaky.txt && outputs leaky1 leaky > $out/stdout 2>&1 &&
    ! $onnx tools/reluize_relus.py $out leaky leaky1.y.npy 1e-6 2> $out/stdout
verdict $? "--leaky alone: plain ReLU" "$(cat $out/stderr $out/leaky.txt)"

# weights that are stored in 8 bits become wider: the report says so, and only then
$out/reluize $out/narrow.onnx --data $out/perceptron.npy -o $out/wide.onnx --quiet > $out/wide.txt 2> $out/stderr &&
    grep -q 'has 2 of the changed matrices in fewer bits' $out/wide.txt
verdict $? "weights in 8 bits that become floats are named" "$(cat $out/stderr $out/wide.txt)"
$out/reluize $out/perceptron.onnx --data $out/perceptron.npy -o $out/wide.onnx --quiet > $out/wide.txt 2> $out/stderr && ! grep -q 'in fewer bits' $out/wide.txt
verdict $? "weights that stay as wide are not" "$(cat $out/stderr $out/wide.txt)"
grep -q 'measured as numbers: .*(--class-axis 1: they are)' $out/wide.txt &&
    $out/reluize $out/perceptron.onnx --data $out/perceptron.npy --class-axis 1 -o $out/wide.onnx --quiet > $out/wide.txt 2> $out/stderr &&
    ! grep -q '(--class-axis ' $out/wide.txt && grep -q flips $out/wide.txt
verdict $? "what is no prediction is said, unless an option says that it is one" "$(cat $out/stderr $out/wide.txt)"

$out/reluize $out/mask.onnx --data $out/mask.npy -o $out/wide.onnx --quiet > $out/wide.txt 2> $out/stderr && ! grep -q 'The prediction is' $out/wide.txt
verdict $? "the columns of an image of one channel are no classes" "$(cat $out/stderr $out/wide.txt)"

# what is not finite: named, never counted as a change of 0
for model in infinite perceptron; do
    data=$out/infinite.npy
    [ $model = perceptron ] && data=$out/huge.npy
    $out/reluize $out/$model.onnx --data $data -o $out/wide.onnx --report $out/wide.json --quiet > $out/wide.txt 2> $out/stderr &&
        grep -q "^Of the original's outputs on the test samples [0-9]* of 500 are infinite or no numbers" $out/wide.txt && ! grep -q -w nan $out/wide.txt
    verdict $? "outputs that are not finite are counted: $model" "$(cat $out/stderr $out/wide.txt)"
done
code=1 refused 'labels.npy: element 7 is NaN' $out/reluize $out/perceptron.onnx --data $out/perceptron.npy --labels $out/labels.npy -o $out/no.onnx --quiet
code=1 refused 'class-axis 7: the last dimension of the output is number 1' $out/reluize $out/perceptron.onnx --data $out/perceptron.npy --class-axis 7 -o $out/no.onnx --quiet

# an output that is not scored can change most
$out/reluize $out/two.onnx --data $out/perceptron.npy -o $out/wide.onnx --report $out/wide.json --quiet > $out/wide.txt 2> $out/stderr &&
    $onnx - $out/wide.json $out/wide.txt << 'EOF'
import json, re, sys
report = json.load(open(sys.argv[1]))
line = re.search(r'^Largest change of any of the 2 outputs, beside its own largest value: (.*)\.$', open(sys.argv[2]).read(), re.M)
assert '%.3g' % report[report['written']]['max_relative_any_output'] == line[1] and float(line[1]) > 0, line[0]
EOF
verdict $? "the change of every output is in the report, as text and as JSON" "$(cat $out/stderr $out/wide.txt)"
$out/reluize $out/gate.onnx --data $out/perceptron.npy --relus 2 --no-line -o $out/wide.onnx --report $out/wide.json --quiet > $out/wide.txt 2> $out/stderr &&
    $onnx -c "
import json
report = json.load(open('$out/wide.json'))
of = {k: v['max_relative_any_output'] for k, v in report.items() if isinstance(v, dict) and v.get('held') == report['refitted']['held']}
assert len(of) == 3 and of[report['written']] < of['refitted'], (report['written'], of)" > $out/stdout 2>> $out/stderr
verdict $? "where the scored output is the same in all ways, the other outputs choose" "$(cat $out/stderr $out/wide.txt)"

# a file that was exported for training draws random numbers
for model in random still; do
    $out/reluize $out/$model.onnx --data $out/perceptron.npy -o $out/wide.onnx --quiet > $out/$model.txt 2> $out/stderr
done
grep -q "^'v2' (Dropout) draws random numbers" $out/random.txt && ! grep -q 'random numbers' $out/still.txt
verdict $? "dropout that is training is named, and no other one" "$(cat $out/random.txt $out/still.txt)"

# names
$out/reluize $out/named.onnx --data $out/perceptron.npy -o $out/wide.onnx --report $out/wide.json --quiet > $out/wide.txt 2> $out/stderr &&
    $onnx -c "
import json
assert json.load(open('$out/wide.json', encoding='utf-8'))['gates'][0]['output'] == '\\ufffd' * 2" > $out/stdout 2>> $out/stderr
verdict $? "names that are not UTF-8 are replaced in a JSON report" "$(cat $out/stderr)"
$onnx -c "
import numpy
numpy.save('$out/ignored.npy', numpy.arange(500) % 6 - 1)"
code=1 refused 'classes are whole numbers from 0' $out/reluize $out/perceptron.onnx --data $out/perceptron.npy --labels $out/ignored.npy -o $out/no.onnx --quiet
code=1 refused 'expected a name of at most 1023 bytes, found 10000' $out/reluize $out/long.onnx --data $out/perceptron.npy -o $out/no.onnx --quiet
exit $bad
