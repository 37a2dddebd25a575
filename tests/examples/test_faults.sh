# SPDX-License-Identifier: MIT-0
# test_faults.sh: every n-th call for memory, opening, closing, flushing, syncing or renaming fails, for every n until a run makes fewer
# calls. In further runs the files cannot grow beyond more and more bytes. Each time the program must end with status 1 and one line of
# its own, or with its usual result. A file under its final name must be complete, and no temporary file may remain. FAULTS=all tests
# every n beyond the first 60, too.
out=build/faults
. tools/job.sh
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
breakable study $STUDY
tiny $out/tiny

# whole: each file in run/ equals that in good/ or is missing, and there is no temporary file. $missing: those that are missing; $why
whole()
{
    missing=
    LC_ALL=C diff -rq $out/good $out/run > $out/other
    while read -r line; do
        case $line in
        "Only in $out/good"*) missing="$missing$line; " ;;
        *.st' differ' | *.gpt' differ')      # not the last one, but good: a run resumed from it ends the same
            f=${line##*/}
            f=${f% differ}
            rm -rf $out/again
            mkdir -p $out/again
            cp $out/run/$f $out/again
            (cd $out/again && if [ ${f##*.} = st ]; then ../study --resume a.st --csv a.csv; else ../4_gpt train ../text.txt --file a.gpt --size "$shape"; fi) < /dev/null > $out/again.out 2> $out/again.err
            [ ${f##*.} = gpt ] || f=a.csv
            cmp $out/again/$f $out/good/$f > /dev/null 2>&1 || { why="the checkpoint does not go on: $(cat $out/again.err)"; return 1; } ;;
        *)  why="$line"; return 1 ;;
        esac
    done < $out/other
}
# survived STATUS: checks that the program ended as it must after a fault, and counts it.
survived()
{
    whole || return 1
    if [ "$1" = 0 ]; then
        why="status 0, but files are missing: $missing"
        [ -z "$missing" ] || return 1
        harmless=$((harmless + 1))
    else
        why="status $1, $(cat $out/err)"
        [ "$1" = 1 ] && [ "$(grep -c "^$program: " $out/err)" -eq 1 ] || return 1
        told=$((told + 1))
    fi
}
# faults NAME PREPARE COMMAND: COMMAND runs in run/, where PREPARE was run first
faults()
{
    name=$1
    prepare=$2
    program=${3##*/}
    shift 2
    rm -rf $out/good $out/run
    mkdir -p $out/good
    (cd $out/good && eval "$prepare" && "$@") > $out/good.out 2> $out/err || { echo "FAIL faults: $name: $(cat $out/err)"; return; }
    n=1
    told=0
    harmless=0
    rm -f $out/missed
    while [ $n -lt 100000 ]; do
        rm -rf $out/run
        mkdir -p $out/run
        (cd $out/run && eval "$prepare" && FAULT_MISSED=../missed FAULT_AT=$n "$@") > $out/out 2> $out/err
        status=$?
        [ -e $out/missed ] && break
        survived $status || { echo "FAIL faults: $name: call $n fails: $why"; return; }
        if [ $n -ge 60 ] && [ "$FAULTS" != all ]; then n=$((n + 1 + n / 16)); else n=$((n + 1)); fi
    done
    verdict $([ -s $out/missed ] && [ $told -ge 5 ]; echo $?) "faults: $name: of $(cat $out/missed) calls $told failed and were reported in a line, $harmless without harm" "it never ended"
    told=0
    harmless=0
    most=$(find $out/good -type f -exec wc -c {} + | awk '$2 != "total" && $1 > m { m = $1 } END { print m + 0 }')
    [ "$most" != 0 ] || return
    bytes=0
    while [ $bytes -lt "$most" ]; do
        rm -rf $out/run
        mkdir -p $out/run
        (cd $out/run && eval "$prepare" && { FAULT_BYTES=$bytes "$@" 2>&1 > /dev/null; echo $? > ../status; } | cat) > $out/err
        survived $(cat $out/status) || { echo "FAIL faults: $name: files end at byte $bytes: $why"; return; }
        bytes=$((bytes + 1 + bytes / 3))
    done
    verdict $([ $told -gt 3 ]; echo $?) "faults: $name: $told files that could not grow were reported in a line" "$told"
}

small="--data ../tiny --hidden 8 --seeds 1 --epochs 2 --batch 90 --arms gelu,hardened,switched --threads 1"
faults 'study swap' : ../study swap $small --csv a.csv --json a.json --svg figures --keep nets --save a.st
study stopped
(cd $out/good && STOP_AT=7 ../stopped swap $small --csv a.csv --save ../half.st > ../half.out 2>&1)
faults 'study swap, resumed' 'cp ../half.st a.st' ../study swap --resume a.st --csv a.csv --json a.json
mkdir -p $out/all && (cd $out/all && ../study swap $small --out . > ../all.out 2>&1)
faults 'study report' 'cp -r ../all .' ../study report --out all

breakable 4_gpt $(declared ../examples/tutorials/4_gpt.c) ../examples/common/text.c ../examples/tutorials/tutorial.c
head -c 3000 ../README.md > $out/text.txt
shape='1 x 8, context 8, batch 4, steps 5, seed 1'
faults '4_gpt train' : ../4_gpt train ../text.txt --file a.gpt --size "$shape"
(cd $out && ./4_gpt train text.txt --file whole.gpt --size "$shape" > gpt.out)
faults '4_gpt sample' : ../4_gpt sample --file ../whole.gpt --prompt the --tokens 20
breakable reluize $RELUIZE
breakable onnx_nets tools/onnx_nets.c ../examples/network/onnx_out.c ../examples/common/data.c
mkdir -p $out/nets && $out/onnx_nets $out/nets > $out/nets.out || exit 1
three_classes 60 > $out/table.csv
faults reluize : ../reluize ../nets/mlp_lambda.onnx --data ../table.csv -o a.onnx --epochs 1 --batch 4     # a run of one sample is what it becomes where memory lacks
for tutorial in 1_gate 2_mlp; do breakable $tutorial $(declared ../examples/tutorials/$tutorial.c) ../examples/common/data.c ../examples/tutorials/tutorial.c; done
faults 1_gate : ../1_gate a.svg
faults 2_mlp : ../2_mlp --data ../tiny --epochs 1 --save a.safetensors
breakable 3_cnn $(declared ../examples/tutorials/3_cnn.c) ../examples/common/data.c ../examples/tutorials/tutorial.c
faults 3_cnn : ../3_cnn --data ../tiny --epochs 1 --pictures 64
faults 'study control' : ../study control --env cartpole --lr 1e-3 --seeds 1 --steps 10240 --epochs 10 --hidden 4 --threads 1 \
    --csv a.csv --json a.json --svg figures --save a.st
breakable measure $MEASURE
(cd $out && ./study swap --data tiny --hidden 8 --seeds 1 --epochs 1 --batch 90 --arms gelu,hardened,relu,switched --threads 1 \
    --keep kept > kept.out)
faults 'measure int8' : ../measure int8 --data ../tiny --networks ../kept --seeds 1 --csv a.csv
faults 'measure certificate' : ../measure certificate --data ../tiny --networks ../kept --seeds 1 --random 20 --attacked 2 \
    --csv a.csv
exit 0
