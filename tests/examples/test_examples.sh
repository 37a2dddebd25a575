# SPDX-License-Identifier: MIT-0
# test_examples.sh: compiles the tutorials 1 to 4 with the command in their first comment, runs them, and checks their output and exit
# status. test_gpt.sh tests how 4_gpt is stopped and resumed, test_mpi.sh tests 5_mpi.
out=build/examples
. tools/job.sh
openmp=
printf '#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n' > $out/omp.c
$CC -fopenmp $out/omp.c -o $out/omp 2> /dev/null && $out/omp && openmp=yes

# In a copy of the repository, with the command of the first comment; -O0 instead of -O2 is faster to compile and tests the same. The
# first one is compiled as it is. The compiler only reads the others so; they are linked to the implementation that all tests share.
mkdir -p $out/copy/examples
cp ../lgelu.h $out/copy && cp -R ../examples/common ../examples/tutorials $out/copy/examples && ln -s "$PWD/../examples/pictures" $out/copy/examples/pictures
shared=$(for part in $IMPLEMENTATION; do case $part in -*) echo "$part" ;; *) echo "$PWD/$part" ;; esac; done)
for tutorial in 1_gate 2_mlp 3_cnn 4_gpt 5_mpi; do
    source=../examples/tutorials/$tutorial.c
    line=$(sed -n 's/^  *\(\(mpi\)*cc .*\)$/\1/p' $source | head -1)
    compiler=$CC
    if [ "${line%% *}" = mpicc ]; then
        if ! command -v mpicc > /dev/null; then echo "skip $tutorial: no mpicc here"; continue; fi
        compiler=mpicc
    fi
    line=$(echo "$line" | sed "s/^[a-z]*/$compiler -std=c99 $WARNINGS -Werror/; s/ -O2 / -O0 /")
    [ "$openmp" ] || line=$(echo "$line" | sed 's/ -fopenmp / /')
    [ $compiler = mpicc ] && line=$(echo "$line" | sed 's/-Wcast-qual//')       # its own header casts
    if [ $tutorial != 1_gate ]; then
        log=$(cd $out/copy/examples/tutorials && eval "$line -fsyntax-only" 2>&1)
        verdict $([ $? = 0 ] && grep -q '^#define LGELU_IMPLEMENTATION$' $source; echo $?) "$tutorial: no warning with its own implementation" "$(echo "$log" | grep -m1 -E 'error|warning')"
        sed -i 's/^#define LGELU_IMPLEMENTATION$//' $out/copy/examples/tutorials/$tutorial.c
        line="$line $(echo $shared)"
    fi
    log=$(cd $out/copy/examples/tutorials && eval "$line" 2>&1)
    verdict $([ $? = 0 ] && [ -x $out/copy/examples/tutorials/$tutorial ]; echo $?) "$tutorial: compiled by the command in its first comment" "$(echo "$log" | grep -m1 -E 'error|warning')"
    if [ $compiler = mpicc ]; then continue; fi
    (cd $out/copy/examples/tutorials && ls > ../../before && ./$tutorial --help > ../../help 2> ../../help.err && ls > ../../after)
    verdict $([ $? = 0 ] && grep -q "^usage: $tutorial" $out/copy/help && [ ! -s $out/copy/help.err ] && cmp $out/copy/before $out/copy/after > /dev/null; echo $?) \
        "$tutorial: --help prints help and writes no file" "$(cat $out/copy/help $out/copy/help.err)"
done
# refuses STATUS PROGRAM ARGUMENTS: that status, nothing on stdout, and on stderr one line, or after a mistake in the options the usage
refuses()
{
    expected=$1
    shift
    "$@" > $out/refused.out 2> $out/refused.err
    status=$?
    [ $status = $expected ] && [ ! -s $out/refused.out ] && if [ $expected = 2 ]; then grep -q '^usage: ' $out/refused.err; else [ "$(wc -l < $out/refused.err)" -eq 1 ]; fi
    verdict $? "$(basename $1) ends with $expected: $(shift; echo "$*")" "status $status, $(cat $out/refused.err)"
}
build() { $CC -std=c99 -O2 $(declared ../examples/tutorials/$1.c) ${2:+$out/$2} ../examples/tutorials/tutorial.c $IMPLEMENTATION -o $out/$1 -lm || exit 1; }

# 1_gate
build 1_gate
$out/1_gate $out/gate.svg > $out/gate.out 2> $out/gate.err
verdict $([ $? = 0 ] && grep -q '^       1   -0.169971   -0.751792          0.169971      0.797885$' $out/gate.out &&
    grep -q '^     160   -0.001062   -0.004699          0.001062      0.004987$' $out/gate.out; echo $?) "1_gate: the table" "$(cat $out/gate.err $out/gate.out)"
fit=$(awk '/^step 4000/ { l = $4; e = $7 } /^with ReLU/ { if (l == "159.577" && e < 0.005 && $NF < 1.05 * e) print "good" }' $out/gate.out)
verdict $([ "$fit" = good ]; echo $?) "1_gate: the fit with kernels alone, its swap to ReLU" "$(tail -3 $out/gate.out)"
verdict $([ "$(grep -c '<polyline' $out/gate.svg)" -eq 14 ] && ! grep -q -i 'nan\|inf' $out/gate.svg; echo $?) "1_gate: fourteen curves" "$(grep -c '<polyline' $out/gate.svg)"
if command -v xmllint > /dev/null; then log=$(xmllint --noout $out/gate.svg 2>&1); verdict $? "1_gate: its drawing is valid XML" "$log"
else echo "skip 1_gate: its drawing is valid XML: no xmllint here"; fi
for isa in scalar avx2 avx512 neon; do
    LGELU_ISA=$isa $out/1_gate $out/isa.svg > /dev/null
    verdict $(cmp $out/gate.svg $out/isa.svg > /dev/null 2>&1; echo $?) "1_gate: the same drawing with LGELU_ISA=$isa" "another one"
done
refuses 2 $out/1_gate a.svg b.svg
refuses 2 $out/1_gate --bogus
for tutorial in 1_gate 2_mlp 3_cnn "4_gpt train"; do LGELU_ISA=avx3 refuses 1 $out/copy/examples/tutorials/$tutorial; done
verdict $(grep -q '^4_gpt: LGELU_ISA: expected scalar, neon, avx2 or avx512$' $out/refused.err; echo $?) "an unknown LGELU_ISA is reported" "$(cat $out/refused.err)"
$out/1_gate $out/missing/gate.svg > $out/gate.out 2> $out/gate.err
verdict $([ $? = 1 ] && [ "$(wc -l < $out/gate.err)" -eq 1 ]; echo $?) "1_gate: a drawing that cannot be written" "$(cat $out/gate.err)"
ln -s target.svg $out/link.svg
$out/1_gate $out/link.svg > $out/gate.out 2>&1
verdict $([ $? = 0 ] && [ -L $out/link.svg ] && cmp $out/target.svg $out/gate.svg > /dev/null; echo $?) "1_gate: a link stays one, its file is written" "$(ls -l $out)"
mkfifo $out/fifo
cat $out/fifo > $out/fifo.svg &
$out/1_gate $out/fifo > $out/gate.out 2>&1
wait $!
verdict $([ -p $out/fifo ] && cmp $out/fifo.svg $out/gate.svg > /dev/null; echo $?) "1_gate: a pipe stays one and gets the drawing" "$(cat $out/gate.out)"
if [ -e /proc/self/fd/1 ]; then
    $out/1_gate /dev/stdout > $out/stdout.svg 2> $out/gate.err
    verdict $([ $? = 0 ] && grep -q '^  *lambda ' $out/stdout.svg && grep -q '^</svg>$' $out/stdout.svg && grep -q '^drawn: ' $out/stdout.svg; echo $?) \
        "1_gate: a file that standard output goes to gets both" "$(cat $out/gate.err)"
else echo "skip 1_gate: standard output as a file: no /proc here"; fi
if [ -c /dev/full ]; then refuses 1 sh -c "$out/1_gate /dev/full > /dev/null"; fi

# 2_mlp
$CC -std=c99 -O1 -c ../examples/common/data.c -o $out/data.o || exit 1
build 2_mlp data.o
tiny $out/tiny
$out/2_mlp --data ../examples/pictures --epochs 1 --save $out/mlp.st > $out/mlp.out 2> $out/mlp.err
verdict $? "2_mlp on the repository's pictures" "$(cat $out/mlp.err)"
verdict $([ "$(sed -n 's/^hardened \([0-9.]*\) %, with ReLU in every gate \([0-9.]*\) %: \([0-9]*\) of 2500 answers flipped, no logit moved by more than \([0-9.]*\)$/\1 \2 \3 \4/p' \
    $out/mlp.out | awk '{ if ($1 > 60 && $3 <= 2 && $4 < 0.01) print "good" }')" = good ]; echo $?) "2_mlp: the swap to ReLU costs nothing" "$(grep hardened $out/mlp.out)"
verdict $(grep -q 'the same logits, bit for bit$' $out/mlp.out && grep -q '@' $out/mlp.out && [ "$(grep -c ', taken for ' $out/mlp.out)" -eq 3 ]; echo $?) \
    "2_mlp: saved, loaded, three pictures classified" "$(tail -5 $out/mlp.out)"
small="$out/2_mlp --data $out/tiny --epochs 2 --save"
$small $out/bits.st > /dev/null
for isa in scalar avx2 avx512 neon; do
    LGELU_ISA=$isa $small $out/isa.st > /dev/null
    verdict $(cmp $out/bits.st $out/isa.st > /dev/null 2>&1; echo $?) "2_mlp: the same file with LGELU_ISA=$isa" "another one"
done
for threads in 1 2 3; do
    OMP_NUM_THREADS=$threads $small $out/isa.st > /dev/null
    verdict $(cmp $out/bits.st $out/isa.st > /dev/null 2>&1; echo $?) "2_mlp: the same file on $threads threads" "another one"
done
awk 'BEGIN { print "a,b,town,what"; for (i = 0; i < 400; i++) print i % 7 ",", (i * 37 % 100) / 10, "," (i % 3 ? "Rome" : "Oslo") "," (i % 7 > 3 ? "yes" : "no") }' > $out/table.csv
$out/2_mlp --data $out/table.csv --epochs 30 --save $out/isa.st > $out/table.out 2> $out/table.err
verdict $([ $? = 0 ] && grep -q '^hardened 100.00 %, with ReLU in every gate 100.00 %: 0 of 80 ' $out/table.out; echo $?) "2_mlp: a table" "$(cat $out/table.err; grep hardened $out/table.out)"
# fine-tuning: the file's network trains on for three epochs and stays as good as it was; its first loss is far below that of a new network
$out/2_mlp --data $out/table.csv --epochs 3 --save $out/short.st > $out/short.out 2> $out/table.err
$out/2_mlp --data $out/table.csv --epochs 3 --from $out/isa.st --save $out/tuned.st > $out/tuned.out 2>> $out/table.err
status=$?
lower=$(awk '/^epoch   1/ { loss[++n] = $4 } END { print n == 2 && loss[1] < loss[2] / 10 }' $out/tuned.out $out/short.out)
[ $status = 0 ] && [ "$(grep -c '^epoch' $out/tuned.out)" = 3 ] && [ "$lower" = 1 ] && grep -q '^hardened 100.00 %' $out/tuned.out
verdict $? "2_mlp --from: fine-tunes what it has saved" "$(cat $out/table.err $out/tuned.out $out/short.out | grep -e '^epoch   1' -e ':')"
refuses 1 $out/2_mlp --data $out/table.csv --from $out/nowhere
# early stopping: of 24 epochs λ reaches its target in epoch 18, and no earlier network may be the best one
$out/2_mlp --data $out/tiny --epochs 24 --patience 2 --save $out/early.st > $out/early.out 2> $out/early.err
verdict $([ $? = 0 ] && awk '/^epoch/ { epoch = $2; last = $NF } /^ *held out/ { if (last != "159.577") bad = 1; seen++; at[epoch] = $3; if (!best || $3 > top) { best = epoch; top = $3 } }
    /^best on/ { if ($7 != best "," || $8 != top) bad = 1; said = 1 }
    END { exit bad || !said || !seen || (epoch < 24 && epoch != best + 2) }' $out/early.out; echo $?) \
    "2_mlp: early stopping keeps the best network of those whose λ is at its target" "$(cat $out/early.err; tail -12 $out/early.out)"
verdict $(grep -q 'the same logits, bit for bit$' $out/early.out; echo $?) "2_mlp: the best network is the one that is saved" "$(tail -3 $out/early.out)"
refuses 1 $out/2_mlp --data $out/table.csv:b
refuses 1 $out/2_mlp --data $out/nowhere
for bad in '--bogus 1' '--epochs 0' '--epochs x' '--epochs' '--patience -1' 'stray' '--help --help'; do refuses 2 $out/2_mlp $bad; done
$out/2_mlp --data $out/tiny --epochs 1 --save $out/missing/a.st > $out/mlp.out 2> $out/mlp.err
verdict $([ $? = 1 ] && [ "$(wc -l < $out/mlp.err)" -eq 1 ]; echo $?) "2_mlp: a file that cannot be written" "$(cat $out/mlp.err)"

# 3_cnn
build 3_cnn data.o
$out/3_cnn --data $out/tiny --epochs 6 > $out/cnn.out 2> $out/cnn.err
verdict $? "3_cnn" "$(cat $out/cnn.err)"
verdict $([ "$(grep -c ' λ [0-9.]* *#*$' $out/cnn.out)" -eq 7 ] && grep -q 'swapped cold here.*measured again in 40 forward passes' $out/cnn.out; echo $?) \
    "3_cnn: seven gates, the cold swap and the statistics after it" "$(cat $out/cnn.out)"
verdict $([ "$(sed -n 's/^hardened [0-9.]* %, with ReLU in every gate [0-9.]* %: \([0-9]*\) of 60 answers flipped, no logit moved by more than \([0-9.]*\)$/\1 \2/p' $out/cnn.out |
    awk '{ if ($1 <= 1 && $2 < 0.02) print "good" }')" = good ]; echo $?) "3_cnn: the swap to ReLU costs nothing" "$(grep hardened $out/cnn.out)"
verdict $([ "$(sed -n 's/^folded: 9 normalisations, then 0; no logit moved by more than \([0-9.e+-]*\)$/\1/p' $out/cnn.out | awk '{ if ($1 < 1e-4) print "good" }')" = good ]; echo $?) \
    "3_cnn: folded for inference, the same logits but for rounding" "$(tail -1 $out/cnn.out)"
refuses 1 $out/3_cnn --data $out/table.csv
refuses 1 $out/3_cnn --data $out/nowhere
for bad in '--bogus 1' '--epochs 0' '--pictures 63' '--epochs' stray; do refuses 2 $out/3_cnn $bad; done

# The images of the repository are drawn again by the command in the first comment; test_data compares their pixels.
line=$(sed -n 's/^  *\(cc .*\) && .*$/\1/p' ../examples/common/draw_pictures.c | head -1 | sed "s/^cc/$CC -std=c99/; s/ -O2 / -O1 /")
(cd $out/copy/examples/common && eval "$line" && mkdir drawn && ./draw_pictures drawn) > $out/drawn.out 2> $out/drawn.err
verdict $([ $? = 0 ] && [ "$(ls $out/copy/examples/common/drawn)" = "$(ls ../examples/pictures)" ]; echo $?) \
    "draw_pictures: compiled by the command in its first comment, it draws as many sheets" "$(cat $out/drawn.err)"
refuses 1 $out/copy/examples/common/draw_pictures $out/nowhere
refuses 2 $out/copy/examples/common/draw_pictures
exit 0
