# SPDX-License-Identifier: MIT-0
# test_study_resume.sh: a study stopped anywhere and resumed ends with the bytes of one that was not; nothing harms the checkpoint it has.
# KILLS=50: it is killed at so many random moments (20).
out=build/study_resume
. tools/job.sh
study stopped
tiny $out/tiny
lone=; case "$IMPLEMENTATION" in *-fopenmp*) ;; *) lone="--threads 1" ;; esac
begin="$out/stopped swap --data $out/tiny --hidden 12,8 --seeds 2 --epochs 2 --batch 90"        # 6 steps a run, branches after 2 of them: 60 in all
resume="$out/stopped swap"

files() { echo "--csv $out/$1.csv --json $out/$1.json --log $out/$1.jsonl"; }
# a log may hold an epoch twice, with other clocks, and each command
clockless() { grep -v '^{"command"' "$1" | sed 's/, "seconds".*//' | sort -u; }
same() {
    for kind in csv json st; do cmp $out/$1.$kind $out/$2.$kind || return 1; done
    clockless $out/$1.jsonl > $out/same.1
    clockless $out/$2.jsonl > $out/same.2
    cmp $out/same.1 $out/same.2 || return 1
    sed -n '/^arm /,$p' $out/$1.out > $out/same.1
    sed -n '/^arm /,$p' $out/$2.out > $out/same.2
    cmp $out/same.1 $out/same.2
}

$begin $(files whole) --save $out/whole.st > $out/whole.out 2> $out/whole.err
verdict $? "a run that keeps checkpoints" "$(cat $out/whole.err)"
$begin $(files plain) > $out/plain.out
cp $out/whole.st $out/plain.st
verdict $(same whole plain > $out/same.log 2>&1; echo $?) "keeping checkpoints changes no result" "$(cat $out/same.log)"
$begin $(files often) --save $out/often.st --save-every 1 ${lone:---threads 3} > $out/often.out
verdict $(same whole often > $out/same.log 2>&1; echo $?) "nor does keeping more of them, on more threads" "$(cat $out/same.log)"

# stopped after every single step, each process going on where the one before it was
chain 72 "$begin $(files chain) --save $out/chain.st --threads 1" "$resume --resume $out/chain.st $(files chain) --threads 1"
verdict $(same whole chain > $out/same.log 2>&1; echo $?) "it ends with the same table, CSV, JSON, log and checkpoint, byte for byte" "$(cat $out/same.log)"
$resume --resume $out/chain.st $(files chain) > $out/chain.out
verdict $(same whole chain > $out/same.log 2>&1; echo $?) "a finished study only writes its files again" "$(cat $out/same.log)"
STOP_AT=13 $begin $(files two) --save $out/two.st ${lone:---threads 2} > $out/two.out 2> $out/two.err
$resume --resume $out/two.st $(files two) --threads 1 > $out/two.out 2>> $out/two.err
verdict $(same whole two > $out/same.log 2>&1; echo $?) "begun on two threads, ended on one" "$(cat $out/same.log $out/two.err)"

# running means and variances, pictures moved at random; several rates; text with dropout
for kind in resnet8 rates gpt; do
    case $kind in
    resnet8) long="$out/stopped swap --net resnet8 --data ../examples/pictures --quick --samples 400 --test-samples 50 --width 1 --epochs 2 --batch 180 --augment crop-flip" ;;
    rates)   long="$begin --lr 1e-3,3e-3,1e30 --c 1,2 --arms gelu,hardened" ;;
    gpt)     long="$out/stopped swap --net gpt --quick --text ../examples/common/text.h --layers 1 --width 8 --steps 6 --dropout 0.2" ;;
    esac
    $long $(files long) --save $out/long.st > $out/long.out 2> $out/long.err
    for stop in 3 10; do
        STOP_AT=$stop $long $(files cut) --save $out/cut.st > $out/cut.out 2> $out/cut.err
        $resume --resume $out/cut.st $(files cut) > $out/cut.out 2>> $out/cut.err
        verdict $(grep -q ': resumes at' $out/cut.out && same long cut > $out/same.log 2>&1; echo $?) "$kind, stopped after $stop steps" "$(cat $out/same.log $out/cut.err)"
    done
done

# killed at any moment: the file is there, whole, and the end is the same
rm -f $out/kill.st
kills=0
lost=
slow="--seeds 40"
$begin $slow $(files slow) --save $out/slow.st > $out/slow.out
while [ $kills -lt ${KILLS:-20} ]; do
    if [ -e $out/kill.st ]; then set -- $resume --resume $out/kill.st --save-every 1; had=1
    else set -- $begin $slow --save $out/kill.st --save-every 1; had=; fi
    "$@" > $out/kill.out 2> $out/kill.err &
    sleep 0.$(od -An -N2 -tu2 /dev/urandom | awk '{ printf "%03d", 10 + $1 % 140 }')
    if kill -KILL $! 2> /dev/null; then kills=$((kills + 1)); fi
    wait $! 2> /dev/null
    [ -s $out/kill.err ] && lost="$lost $(cat $out/kill.err)"
    [ "$had" ] && [ ! -e $out/kill.st ] && lost="$lost missing"
    if grep -q '^arm ' $out/kill.out; then                              # this one came to its end
        cmp $out/kill.st $out/slow.st > /dev/null 2>&1 || lost="$lost other bytes"
        rm -f $out/kill.st
    fi
done 2> /dev/null
[ -e $out/kill.st ] || $begin $slow --save $out/kill.st > /dev/null
$resume --resume $out/kill.st $(files kill) > $out/kill.out 2> $out/kill.err || lost="$lost $(cat $out/kill.err)"
cmp $out/kill.st $out/slow.st > /dev/null 2>&1 && cmp $out/kill.csv $out/slow.csv > /dev/null 2>&1 || lost="$lost other bytes"
verdict $([ -z "$lost" ]; echo $?) "SIGKILL at $kills random moments: a whole checkpoint each time, the same final bytes" "$lost"

# Ctrl-C from outside, on a study that would run for minutes; two of them with one name
for signal in INT TERM; do
    $begin --seeds 900 --epochs 100 --threads 1 --save $out/c.st > $out/c.out 2> $out/c.err &
    sleep 1
    kill -$signal $!
    wait $!
    status=$?
    [ $status = 130 ] && [ "$(wc -l < $out/c.err)" -eq 1 ] && grep -q 'stopped at .*--resume' $out/c.err
    verdict $? "SIG$signal saves and ends it with status 130" "status $status, $(cat $out/c.err)"
    step=$(sed -n 's/.*stopped at \(.*\); .*/\1/p' $out/c.err)
    STOP_AT=1 $resume --resume $out/c.st --threads 1 > $out/c.out 2> $out/c.err
    verdict $(grep -q "resumes at $step\$" $out/c.out; echo $?) "and it resumes at $step" "$(cat $out/c.err)"
done
$begin --save $out/both.st --save-every 1 > $out/both.1 2>&1 &
$begin --save $out/both.st --save-every 1 > $out/both.2 2>&1
one=$?
wait $!
verdict $([ $? = 0 ] && [ $one = 0 ] && cmp $out/both.st $out/whole.st > /dev/null 2>&1; echo $?) "two processes with one --save don't hurt each other" "$(cat $out/both.1 $out/both.2 | grep study:)"

# what goes wrong leaves the last good checkpoint
NAN_AT=12 $begin $(files nan) --save $out/nan.st --save-every 1 --threads 1 > $out/nan.out 2> $out/nan.err
status=$?
[ $status = 1 ] && [ "$(wc -l < $out/nan.err)" -eq 1 ] && grep -q ', seed 1, step [0-9]*: the loss.*not finite.*nan.st' $out/nan.err
verdict $? "NaN names arm, seed and step" "status $status, $(cat $out/nan.err)"
$resume --resume $out/nan.st $(files nan) > $out/nan.out 2> $out/nan.err
verdict $(same whole nan > $out/same.log 2>&1; echo $?) "and the checkpoint before it is good" "$(cat $out/nan.err $out/same.log)"

STOP_AT=30 $begin --save $out/full.st > /dev/null 2>&1
cp $out/full.st $out/full.was
(trap '' XFSZ; ulimit -f 8; exec $resume --resume $out/full.st) > $out/full.out 2> $out/full.err
status=$?
[ $status = 1 ] && [ "$(wc -l < $out/full.err)" -eq 1 ] && grep -q -e "--save: $out/full.st: " $out/full.err && cmp $out/full.st $out/full.was > /dev/null 2>&1 &&
    [ -z "$(find $out -name 'full*.part')" ]
verdict $? "no space for a file: one line, the old checkpoint stays" "status $status, $(cat $out/full.err)"
if [ "$(id -u)" != 0 ]; then
    mkdir -p $out/shut && cp $out/full.was $out/shut/a.st && chmod 500 $out/shut
    $resume --resume $out/shut/a.st > $out/shut.out 2> $out/shut.err
    status=$?
    chmod 700 $out/shut
    verdict $([ $status = 1 ] && cmp $out/shut/a.st $out/full.was > /dev/null 2>&1; echo $?) "a folder without the right to write: the old checkpoint stays" "status $status"
else echo "skip a folder without the right to write: root may write anywhere"; fi
$resume --resume $out/full.st $(files full) > $out/full.out 2> $out/full.err
verdict $([ -s $out/full.out ] && cmp $out/full.st $out/whole.st > /dev/null 2>&1; echo $?) "with room again it ends with the same bytes" "$(cat $out/full.err)"

# refusals: one line that names the option, and the checkpoint, the CSV and the log as they were
kept=$out/r.st
STOP_AT=30 $begin --save $kept > /dev/null 2>&1
cp $kept $kept.was
echo old > $out/r.csv
echo old > $out/r.jsonl
code=2
for other in 'seed 2' 'seeds 3' 'epochs 3' 'batch 100' 'lr 0.01' 'lr 0.001,0.01' 'weight-decay 0' 'c 2' 't 1' 'map sigmoid' 'init soft' 'harden-from 0.5' 'shape cosine' \
    'tau 0.01' 'hidden 12,9'; do refused ": --${other%% *}: " $resume --resume $out/r.st --${other%% *} "${other#* }" --csv $out/r.csv --log $out/r.jsonl; done
code=1
mkdir -p $out/turned && for f in train t10k; do cp $out/tiny/$f-labels-idx1-ubyte $out/turned; done
for f in train t10k; do { head -c 16 $out/tiny/$f-images-idx3-ubyte; tail -c +17 $out/tiny/$f-images-idx3-ubyte | tr '\000-\377' '\001-\377\000'; } > $out/turned/$f-images-idx3-ubyte; done
refused ": --data: " $resume --resume $out/r.st --data $out/turned --csv $out/r.csv --log $out/r.jsonl
refused ": --resume: " $resume --resume $out/nowhere.st
refused ": --resume: " $resume --resume $out/whole.csv
head -c $(($(wc -c < $out/r.st) - 100)) $out/r.st > $out/cut.st
refused ": --resume: " $resume --resume $out/cut.st
sed 's/"state":"[0-9]*/"state":"9/' $out/r.st > $out/bad.st
refused ": --resume: " $resume --resume $out/bad.st
refused ": --log: " $resume --resume $out/r.st --csv $out/r.csv --log $out
verdict $([ "$(cat $out/r.csv)" = old ] && [ "$(cat $out/r.jsonl)" = old ]; echo $?) "a refused resume leaves the CSV and the log alone" "$(wc -l $out/r.csv $out/r.jsonl)"
code=
$resume --resume $out/r.st --data $out/tiny --hidden 12,8 --seeds 2 --epochs 2 --batch 90 --csv $out/r.csv > $out/r.out 2> $out/r.err
verdict $([ $? = 0 ] && cmp $out/r.st $out/whole.st > /dev/null 2>&1; echo $?) "the same options may be given again" "$(cat $out/r.err)"
[ -z "$(find $out -name '*.part')" ]
verdict $? "no part of a file is left" "$(find $out -name '*.part')"
exit 0
