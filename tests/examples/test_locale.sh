# SPDX-License-Identifier: MIT-0
# test_locale.sh: numbers are read and written with a decimal point in a locale that has a decimal comma. It tests the readers and
# writers of the examples, tables, and the files of the study, of reluize and of measure. The locale is made here, from the sources
# in Debian's package locales.
out=build/locale
. tools/job.sh
if ! command -v localedef > /dev/null; then echo "skip locales: no localedef here"; exit 0; fi
mkdir -p $out/places
for name in de_DE fr_FR; do
    localedef -i $name -f UTF-8 $out/places/$name.UTF-8 > $out/localedef.log 2>&1 && locale=$name.UTF-8
done
if [ -z "$locale" ]; then echo "skip locales: no sources of them (Debian: locales)"; exit 0; fi
LOCPATH=$PWD/$out/places
export LOCPATH
$CC -std=c99 -O1 $WARNINGS -Werror -c tools/locale_start.c -o $out/start.o || exit 1
point() { LC_ALL=C "$@"; }
comma() { LC_ALL=$locale COMMA=1 "$@"; }
printf 'int main(void) { return 0; }\n' > $out/none.c
$CC $out/none.c $out/start.o -o $out/none || exit 1
comma $out/none
verdict $? "$locale has a decimal comma" "status $?"
[ $bad = 0 ] || exit 1

awk 'BEGIN { for (i = 0; i < 50; i++) printf "%d.%d,%s-.5e1,%d\n", i, i * 7 % 10, i % 2 ? "" : "1", i % 3 }' | sed 's/,1-/,/' > $out/table.csv
pairs=$(built ../examples/reluize/ops/*.c ../examples/reluize/passes/*.c $(for p in int8/int8 reluize/onnx/onnx_graph verify/bounds verify/pieces verify/mip verify/nnet reluize/onnx/npy network/onnx_out network/torch_file verify/vnnlib common/data; do echo ../examples/$p.c; done))
$CC -std=c99 -O1 -I.. $(echo $WARNINGS) tools/locale_check.c $pairs $IMPLEMENTATION $out/start.o -o $out/check -lm 2> $out/check.log ||
    { echo "FAIL the readers' program compiles: $(grep -m1 error $out/check.log)"; exit 1; }
point $out/check $out/table.csv > $out/check.point && comma $out/check $out/table.csv > $out/check.comma
verdict $? "readers and writers run" "status $?"
cmp $out/check.point $out/check.comma > $out/cmp 2>&1
verdict $? "VNN-LIB, .nnet, LP files, solutions, C, npy, safetensors, ONNX and tables: the same bytes" "$(cat $out/cmp)"
verdict $([ "$(grep -a -c '^\[.*: ok\]$' $out/check.point)" = 12 ]; echo $?) "and they read what they should" \
    "$(grep -a '^\[' $out/check.point | grep -v ok)"

# study: options, tables, CSV, JSON, figures, log, checkpoint, report
log=$($CC -std=c99 -O1 $STUDY $IMPLEMENTATION $out/start.o -o $out/study -lm 2>&1) ||
    { echo "FAIL the study compiles: $(echo "$log" | grep -m1 error)"; exit 1; }
for way in point comma; do
    mkdir -p $out/$way
    (cd $out/$way && $way ../study swap --data ../table.csv --net tabular --hidden 6 --epochs 2 --batch 8 --holdout 8 --seeds 2 \
        --lr 2.5e-3,0.001 --t 0.125 --threads 1 --out . --save a.st --keep kept > said 2> errors &&
        $way ../study report --out . >> said 2>> errors)
    verdict $? "the study, numbers with a $way" "$(tail -n 1 $out/$way/errors)"
done
for f in $(cd $out/point && find . -type f ! -name '*.jsonl' ! -name errors | sort); do
    sed 's/[0-9.]* s\b//g; s/after [0-9:]*$//' $out/point/$f > $out/a
    sed 's/[0-9.]* s\b//g; s/after [0-9:]*$//' $out/comma/$f > $out/b
    cmp $out/a $out/b > $out/cmp 2>&1 || break
    f=
done
verdict $([ -z "$f" ] && [ $(find $out/point -type f | wc -l) -gt 10 ]; echo $?) "the study's files are the same" "$f: $(cat $out/cmp)"
tail -q -n +2 $out/comma/*.jsonl > $out/log
verdict $(grep -q '[0-9]\.[0-9]' $out/log && ! grep -q '": *-*[0-9]*,[0-9]' $out/log; echo $?) "its log has points" "$(tail -n 1 $out/log)"
(cd $out/point && cp a.st b.st && comma ../study swap --resume b.st > again 2> errors)
verdict $? "a checkpoint of the one is read in the other" "$(tail -n 1 $out/point/errors)"

# reluize: options, tables, the report as text and as JSON
log=$($CC -std=c99 -O1 $RELUIZE $IMPLEMENTATION $out/start.o -o $out/reluize -lm 2>&1 &&
    $CC -std=c99 -O1 tools/onnx_nets.c $(built ../examples/network/onnx_out.c ../examples/common/data.c) $IMPLEMENTATION -o $out/onnx_nets -lm 2>&1) ||
    { echo "FAIL reluize compiles: $(echo "$log" | grep -m1 error)"; exit 1; }
mkdir -p $out/nets && $out/onnx_nets $out/nets > $out/nets.list
three_classes 60 > $out/rows.csv
for way in point comma; do
    $way $out/reluize $out/nets/mlp_lambda.onnx --data $out/rows.csv -o $out/$way/a.onnx --int8 $out/$way/b.onnx --epochs 1 \
        --rate 0.0125 --batch 20 --report $out/$way/report.json > $out/$way/report.txt 2> $out/errors
    verdict $? "reluize, numbers with a $way" "$(tail -n 1 $out/errors)"
done
for f in a.onnx b.onnx report.json report.txt; do
    sed "s|$out/point|$out/comma|g; s/[0-9.]* s\b//g; s/\"[a-z_]*seconds\": [-+0-9.e]*//g; s/after [0-9:]*$//" $out/point/$f > $out/a
    sed 's/[0-9.]* s\b//g; s/"[a-z_]*seconds": [-+0-9.e]*//g; s/after [0-9:]*$//' $out/comma/$f > $out/b
    cmp $out/a $out/b > $out/cmp 2>&1
    verdict $? "reluize: the same $f" "$(cat $out/cmp)"
done

# measure: options, CSV
log=$($CC -std=c99 -O1 $MEASURE $IMPLEMENTATION $out/start.o -o $out/measure -lm 2>&1) ||
    { echo "FAIL measure compiles: $(echo "$log" | grep -m1 error)"; exit 1; }
tiny $out/tiny
comma $out/study swap --data $out/tiny --hidden 8 --seeds 1 --epochs 1 --batch 90 --arms gelu,hardened,relu,switched --threads 1 \
    --keep $out/kept > $out/kept.out 2> $out/errors
verdict $? "networks for measure" "$(tail -n 1 $out/errors)"
for way in point comma; do
    (cd $out/$way && $way ../measure verification --data ../tiny --networks ../kept --seeds 1 --pictures 4 --seconds 0 --eps 0.5,1.5,2 \
        --csv v.csv > v.txt 2> errors)
    verdict $? "measure, numbers with a $way" "$(tail -n 1 $out/$way/errors)"
done
cmp $out/point/v.csv $out/comma/v.csv > $out/cmp 2>&1 && cmp $out/point/v.txt $out/comma/v.txt > $out/cmp 2>&1
verdict $? "measure: the same table and CSV" "$(cat $out/cmp)"
exit $bad
