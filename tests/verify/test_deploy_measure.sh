# SPDX-License-Identifier: MIT-0
# test_deploy_measure.sh: the five measurements of examples/verify/measure on small networks of the study.
out=build/measure
. tools/job.sh
bin=$out
if ! MAKEFLAGS= make -n -C ../examples build/study build/measure > $out/make.log 2>&1 ||
    ! $CC -std=c99 -O2 $STUDY $IMPLEMENTATION -o $out/study -lm 2> $out/make.log ||
    ! $CC -std=c99 -O2 $MEASURE $IMPLEMENTATION -o $out/measure -lm 2> $out/make.log; then
    tail -n 5 $out/make.log
    echo "FAIL measure: it does not compile"
    exit 1
fi
if ! $bin/study swap --data ../examples/pictures --quick --seeds 2 --hidden 12,10 --arms gelu,hardened,relu,switched \
    --keep $out/networks > $out/study.log 2>&1; then
    tail -n 3 $out/study.log
    echo "FAIL measure: the study"
    exit 1
fi
# run TASK QUANTITY TEXT OPTIONS...: numbers of this quantity for two seeds, and this text in the table
run() {
    task=$1 quantity=$2 says=$3
    shift 3
    if $bin/measure "$task" --data ../examples/pictures --networks $out/networks --seeds 2 --csv "$out/$task.csv" "$@" \
        > "$out/$task.txt" 2> "$out/$task.log" && [ "$(grep -c "^\"[^\"]*\",\"$quantity\",[a-z]*,[12],[-0-9.e+]*$" "$out/$task.csv")" -ge 8 ] \
        && grep -q "$says" "$out/$task.txt"; then
        echo "ok measure $task"
    else
        cat "$out/$task.log" "$out/$task.txt" | tail -n 3
        echo "FAIL measure $task"
    fi
}
run verification 'proven by linear relaxation, %' 'hardened proves more by linear relaxation than relu' --pictures 6 --seconds 2
# optimised lines prove no less than plain ones, and of the smooth network no more is proven than of the ReLU network it becomes
if awk -F , '{ k = $1 $(NF - 2) $(NF - 1) } /proven by linear relaxation/ { lines[k] = $NF } /proven by optimised lines/ { best[k] = $NF }
    /proven so of the smooth/ && $NF != "nan" { smooth[k] = $NF }
    END { for (k in best) { n++; bad += best[k] < lines[k] } for (k in smooth) { m++; some += smooth[k] > 0; bad += smooth[k] > best[k] }
          exit !(n == 36 && m == 12 && some && !bad) }' $out/verification.csv; then
    echo "ok measure verification: what is proven of the ReLU network bounds what is proven of the smooth one"
else
    echo "FAIL measure verification: optimised lines or the smooth network: $(grep -c . $out/verification.csv) lines"
fi
# complete verification: its proofs withstand attacks, each way proves no less than the one before it, nothing that is proven is refuted, and of
# the smooth network no more is proven than of the ReLU network
run relus 'proven, with the solver, %' 'attacked with [1-9][0-9]* inputs: 0 contradictions$' --pictures 6 --seconds 2 --eps 1,3
if awk -F , '{ k = $1 $(NF - 2) $(NF - 1) } /proven by linear relaxation/ { a[k] = $NF } /proven by optimised lines/ { b[k] = $NF }
    /proven, with the solver/ { c[k] = $NF } /"refuted by an input/ { d[k] = $NF } /"decided/ { e[k] = $NF } /"correct/ { f[k] = $NF }
    /"of the smooth network, %/ && $NF != "nan" { g[k] = $NF }
    END { for (k in a) { n++; some += c[k] > 0; bad += a[k] > b[k] || b[k] > c[k] || c[k] + d[k] > f[k] + 1e-6 || c[k] + d[k] > e[k] + 1e-6 }
          for (k in g) { m++; carries += g[k] > 0; bad += g[k] > c[k] } exit !(n == 24 && m == 16 && some && carries && !bad) }' $out/relus.csv; then
    echo "ok measure relus: the ways of proving are in order"
else
    echo "FAIL measure relus: $(grep -c . $out/relus.csv) values are not in order"
fi
run int8 'drop, points' 'does int8 need ReLU' --pictures 100
run sparsity 'zeros behind the gate, %' 'hardened has more zeros than relu' --pictures 100
run certificate 'proven change of a logit' '^0 of [0-9]* inputs changed' --random 300 --attacked 20
if $bin/measure int8 --data ../examples/pictures --networks $out/none 2> $out/none.log; then
    echo "FAIL measure: a folder that is not there"
elif [ "$(wc -l < $out/none.log)" -eq 1 ] && grep -q none/mlp_gelu_1 $out/none.log; then
    echo "ok measure: a folder that is not there is one line"
else
    echo "FAIL measure: $(cat $out/none.log)"
fi
# images that differ from those of the networks, and fewer training images than the ranges are taken from: two classes of ten
mkdir -p $out/few/0 $out/few/1
for class in 0 1; do for i in 0 1 2 3 4 5 6 7 8 9; do
    { printf 'P6 8 8 255\n'; head -c $((3000 + 192 * (10 * class + i))) ../examples/pictures/train_0.png | tail -c 192; } > $out/few/$class/$i.ppm
done; done
$bin/measure int8 --data $out/few --networks $out/networks --seeds 2 2> $out/other.log > $out/other.txt
if [ $? = 1 ] && [ "$(wc -l < $out/other.log)" -eq 1 ] && grep -q 'mlp_gelu_1.*other images' $out/other.log; then
    echo "ok measure: networks of other images are one line"
else
    echo "FAIL measure: networks of other images: $(tail -n 1 $out/other.log)"
fi
if $bin/study swap --data $out/few --seeds 1 --hidden 4 --epochs 1 --batch 4 --holdout 2 --arms gelu,hardened,relu,switched \
    --keep $out/few.networks > $out/study.log 2>&1 && $bin/measure int8 --data $out/few --networks $out/few.networks --seeds 1 \
    > $out/few.txt 2> $out/few.log && grep -q 'ranges from 16 training images' $out/few.txt; then
    echo "ok measure int8: fewer training images than usual"
else
    echo "FAIL measure int8 of few images: $(tail -qn 1 $out/study.log $out/few.log)"
fi
