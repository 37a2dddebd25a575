# SPDX-License-Identifier: MIT-0
# test_resume.sh: a job stopped anywhere and resumed ends with the bits of one that was not; nothing harms the checkpoint it has.
out=build/resume
. tools/job.sh
pictures=../examples/pictures
parts="../examples/job.c ../examples/job_figures.c ../examples/data.c"
stoppable $out/mlp ../examples/2_mlp.c $parts
stoppable $out/cnn ../examples/3_cnn.c $parts
small="--quick --hidden 12,8 --seeds 2 --epochs 2 --batch 300"          # 12 steps an arm, the switch after 9, 84 in all
begin="$out/mlp --data $pictures $small"

files() { echo "--csv $out/$1.csv --json $out/$1.json --log $out/$1.jsonl"; }
clockless() { sed 's/^[a-z]*,[0-9]*,,,seconds,.*//; s/"seconds": \[[^]]*\]//; s/"seconds": [0-9.]*//' "$1"; }
same() {
    for kind in csv json jsonl; do
        clockless $out/$1.$kind > $out/same.1
        clockless $out/$2.$kind > $out/same.2
        cmp $out/same.1 $out/same.2 || return 1
    done
    sed -n '/^arm /,$p' $out/$1.out > $out/same.1
    sed -n '/^arm /,$p' $out/$2.out > $out/same.2
    cmp $out/same.1 $out/same.2 && cmp $out/$1.st $out/$2.st
}

$begin $(files whole) --save $out/whole.st > $out/whole.out 2> $out/whole.err
verdict $? "a run that keeps checkpoints" "$(cat $out/whole.err)"
$begin $(files plain) > $out/plain.out
cp $out/whole.st $out/plain.st
verdict $(same whole plain > $out/same.log 2>&1; echo $?) "keeping checkpoints changes no result" "$(cat $out/same.log)"
$begin $(files often) --save $out/often.st --save-every 1 > $out/often.out
verdict $(same whole often > $out/same.log 2>&1; echo $?) "nor does keeping more of them" "$(cat $out/same.log)"

# stopped after every single step, each process going on where the one before it was
chain 84 "$begin $(files chain) --save $out/chain.st" "$out/mlp --resume $out/chain.st $(files chain)"
verdict $(same whole chain > $out/same.log 2>&1; echo $?) "it ends with the same table, CSV, JSON, log and checkpoint, bit for bit" "$(cat $out/same.log)"
$out/mlp --resume $out/chain.st $(files chain) > $out/chain.out
verdict $(same whole chain > $out/same.log 2>&1; echo $?) "a finished job only writes its files again" "$(cat $out/same.log)"

# running means and variances, pictures moved at random: 4 steps an arm, the switch after 3
convolutional="$out/cnn --quick --data $pictures --width 1 --epochs 2 --batch 1000 --augment crop-flip"
$convolutional --save $out/cnn.st > $out/cnn.out 2> $out/cnn.err
for stop in 3 9; do
    STOP_AT=$stop $convolutional --save $out/cnn2.st > $out/cnn2.out 2> $out/cnn2.err
    $out/cnn --resume $out/cnn2.st > $out/cnn2.out 2>> $out/cnn2.err
    verdict $(grep -q ': goes on at' $out/cnn2.out && cmp $out/cnn.st $out/cnn2.st > /dev/null 2>&1; echo $?) "3_cnn with batch normalisation, stopped after $stop steps" "$(cat $out/cnn2.err)"
done

# killed at any moment: the file is there, whole, and the end is the same
rm -f $out/kill.st
kills=0
lost=
export OMP_NUM_THREADS=1
while [ $kills -lt 50 ]; do
    if [ -e $out/kill.st ]; then set -- $out/mlp --resume $out/kill.st --save-every 1; had=1
    else set -- $begin --save $out/kill.st --save-every 1; had=; fi
    "$@" > $out/kill.out 2> $out/kill.err &
    sleep 0.$(od -An -N2 -tu2 /dev/urandom | awk '{ printf "%03d", 30 + $1 % 250 }')
    if kill -KILL $! 2> /dev/null; then kills=$((kills + 1)); fi
    wait $! 2> /dev/null
    [ -s $out/kill.err ] && lost="$lost $(cat $out/kill.err)"
    [ "$had" ] && [ ! -e $out/kill.st ] && lost="$lost missing"
    if grep -q '^arm ' $out/kill.out; then                              # this one came to its end
        cmp $out/kill.st $out/whole.st > /dev/null 2>&1 || lost="$lost other bits"
        rm -f $out/kill.st
    fi
done 2> /dev/null
[ -e $out/kill.st ] || $begin --save $out/kill.st > /dev/null
$out/mlp --resume $out/kill.st $(files kill) > $out/kill.out 2> $out/kill.err || lost="$lost $(cat $out/kill.err)"
cmp $out/kill.st $out/whole.st > /dev/null 2>&1 || lost="$lost other bits"
verdict $([ -z "$lost" ]; echo $?) "SIGKILL at 50 random moments: a whole checkpoint each time, the same final bits" "$lost"
unset OMP_NUM_THREADS

# Ctrl-C from outside, on a job that would run for minutes
for signal in INT TERM; do
    $out/mlp --data $pictures --hidden 12,8 --seeds 50 --save $out/c.st > $out/c.out 2> $out/c.err &
    sleep 1
    kill -$signal $!
    wait $!
    status=$?
    [ $status = 130 ] && [ "$(wc -l < $out/c.err)" -eq 1 ] && grep -q 'stopped at .*--resume' $out/c.err
    verdict $? "SIG$signal saves and ends it with status 130" "status $status, $(cat $out/c.err)"
    step=$(sed -n 's/.*stopped at \(.*\); .*/\1/p' $out/c.err)
    STOP_AT=1 $out/mlp --resume $out/c.st > $out/c.out 2> $out/c.err
    verdict $(grep -q "goes on at $step\$" $out/c.out; echo $?) "and it goes on at $step" "$(cat $out/c.err)"
done

# what goes wrong leaves the last good checkpoint
NAN_AT=17 $begin $(files nan) --save $out/nan.st --save-every 1 > $out/nan.out 2> $out/nan.err
status=$?
[ $status = 1 ] && [ "$(wc -l < $out/nan.err)" -eq 1 ] && grep -q 'lgelu, seed 1, step 3: the loss.*not finite.*nan.st' $out/nan.err
verdict $? "NaN names arm, seed and step" "status $status, $(cat $out/nan.err)"
$out/mlp --resume $out/nan.st $(files nan) > $out/nan.out 2> $out/nan.err
verdict $(grep -q 'goes on at lgelu, seed 1, step 1$' $out/nan.out && same whole nan > $out/same.log 2>&1; echo $?) "and the checkpoint before it is good" "$(cat $out/nan.err $out/same.log)"

STOP_AT=30 $begin --save $out/full.st > /dev/null 2>&1
cp $out/full.st $out/full.was
(trap '' XFSZ; ulimit -f 8; exec $out/mlp --resume $out/full.st) > $out/full.out 2> $out/full.err
status=$?
[ $status = 1 ] && [ "$(wc -l < $out/full.err)" -eq 1 ] && grep -q -e "--save: $out/full.st: " $out/full.err && cmp $out/full.st $out/full.was > /dev/null 2>&1 && [ ! -e $out/full.st.part ]
verdict $? "no room for a file: one line, the old checkpoint stays" "status $status, $(cat $out/full.err)"
if [ "$(id -u)" != 0 ]; then
    mkdir -p $out/shut && cp $out/full.was $out/shut/a.st && chmod 500 $out/shut
    $out/mlp --resume $out/shut/a.st > $out/shut.out 2> $out/shut.err
    status=$?
    chmod 700 $out/shut
    verdict $([ $status = 1 ] && cmp $out/shut/a.st $out/full.was > /dev/null 2>&1; echo $?) "a folder without the right to write: the old checkpoint stays" "status $status"
else echo "skip a folder without the right to write: root may write anywhere"; fi
$out/mlp --resume $out/full.st $(files full) > $out/full.out 2> $out/full.err
verdict $([ -s $out/full.out ] && cmp $out/full.st $out/whole.st > /dev/null 2>&1; echo $?) "with room again it ends with the same bits" "$(cat $out/full.err)"

# refusals: one line that names the option, status 1, and the file as it was
kept=$out/r.st
STOP_AT=30 $begin --save $kept > /dev/null 2>&1
cp $kept $kept.was
for other in 'seed 2' 'seeds 3' 'epochs 3' 'batch 100' 'lr 0.01' 'weight-decay 0' 'c 2' 't 1' 'map sigmoid' 'init soft' 'harden-from 0.5' 'shape cosine' \
    'tau 0.01' 'hidden 12,9'; do refused ": --${other%% *}: " $out/mlp --resume $out/r.st --${other%% *} "${other#* }"; done
mkdir -p $out/turned && for i in 0 1 2 3; do cp $pictures/train_$(((i + 1) % 4)).png $out/turned/train_$i.png; done && cp $pictures/test_0.png $out/turned
refused ": --data: " $out/mlp --resume $out/r.st --data $out/turned
refused ": --resume: " $out/mlp --resume $out/nowhere.st
refused ": --resume: " $out/mlp --resume $out/whole.csv
head -c 20000 $out/r.st > $out/cut.st
refused ": --resume: " $out/mlp --resume $out/cut.st
sed 's/"state":"[0-9]*/"state":"9/' $out/r.st > $out/bad.st
refused ": --resume: " $out/mlp --resume $out/bad.st
refused ": --save: " $out/mlp --quick --data $pictures --save $out/missing/a.st
refused ": --save: " $out/mlp --quick --data $pictures --save $out
$out/mlp --resume $out/r.st $small --data $pictures --csv $out/r.csv > $out/r.out 2> $out/r.err
verdict $([ $? = 0 ] && cmp $out/r.st $out/whole.st > /dev/null 2>&1; echo $?) "the same options may be given again" "$(cat $out/r.err)"
[ -z "$(find $out -name '*.part' ! -name 'kill*')" ]
verdict $? "no part of a file is left" "$(find $out -name '*.part')"
exit 0
