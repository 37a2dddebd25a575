# SPDX-License-Identifier: MIT-0
# test_gpt.sh: runs 4_gpt as its users do: training that is stopped at any step and resumed, or killed; sampling; errors.
out=build/gpt
. tools/job.sh
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
clean $out/plain "compiles without a warning" ../examples/tutorials/4_gpt.c ../examples/common/text.c ../examples/tutorials/tutorial.c
stoppable $out/gpt ../examples/tutorials/4_gpt.c ../examples/common/text.c ../examples/tutorials/tutorial.c
size='2 x 8, context 12, batch 3, steps 20, seed 7'
train() { $out/gpt train ../examples/common/text.h --size "$size" --file "$@"; }
# stops STATUS WHAT COMMAND...: the command ends with that status and one line on stderr that contains WHAT; its file is unchanged.
stops()
{
    expected=$1
    what=$2
    shift 2
    "$@" > $out/stops.out 2> $out/stops.err
    status=$?
    lines=1
    [ $expected = 2 ] && lines=2
    [ $status = $expected ] && [ "$(wc -l < $out/stops.err)" -eq $lines ] && grep -q -e "$what" $out/stops.err && cmp $out/whole.st $out/whole.was > /dev/null 2>&1
    verdict $? "stops with $expected: $what" "status $status, $(cat $out/stops.err)"
}

train $out/whole.st > $out/whole.out 2> $out/whole.err
verdict $? "trains to the end" "$(cat $out/whole.err)"
cp $out/whole.st $out/whole.was
verdict $([ "$(grep -c '^step' $out/whole.out)" = 20 ] && grep -q '^step     20   loss [0-9.]*   held out [0-9.]*   λ 159.577 159.577$' $out/whole.out; echo $?) \
    "twenty lines, λ at its target in the last" "$(tail -2 $out/whole.out)"
drop=$(sed -n 's/^held out: hardened \([0-9.]*\), with ReLU in every gate \([0-9.]*\)$/\1 \2/p' $out/whole.out | awk '{ d = $1 - $2; print (d < 0.001 && -d < 0.001 ? "none" : d) }')
verdict $([ "$drop" = none ]; echo $?) "the swap to ReLU costs nothing" "$drop, $(tail -1 $out/whole.out)"

# The training is stopped after every step; each process continues where the one before it stopped.
status=130
stops=0
export STOP_AT=1
while [ $status = 130 ] && [ $stops -lt 40 ]; do
    train $out/chain.st > $out/chain.out 2> $out/chain.err
    status=$?
    [ $status = 130 ] && stops=$((stops + 1))
done
unset STOP_AT
verdict $([ $status = 0 ] && [ $stops = 19 ] && cmp $out/chain.st $out/whole.st > /dev/null 2>&1; echo $?) \
    "stopped and resumed after each of 19 steps: the same file, bit for bit" "status $status after $stops stops, $(cat $out/chain.err)"
train $out/chain.st > $out/chain.out 2> $out/chain.err
verdict $([ $? = 0 ] && cmp $out/chain.st $out/whole.st > /dev/null 2>&1; echo $?) "a finished run only says so again" "$(cat $out/chain.err)"
for isa in scalar avx2 avx512 neon; do
    LGELU_ISA=$isa train $out/isa.st > $out/isa.out 2>&1
    verdict $(cmp $out/isa.st $out/whole.st > /dev/null 2>&1; echo $?) "the same bits with LGELU_ISA=$isa" "$(tail -1 $out/isa.out)"
    rm -f $out/isa.st
done

# The training is killed at any moment: the file exists and is complete, and the result is the same.
kills=0
lost=
while [ $kills -lt 20 ]; do
    $out/gpt train ../examples/common/text.h --size "$size" --file $out/kill.st > $out/kill.out 2> $out/kill.err &
    sleep 0.$(od -An -N2 -tu2 /dev/urandom | awk '{ printf "%03d", 5 + $1 % 60 }')
    kill -KILL $! 2> /dev/null
    wait $! 2> /dev/null
    status=$?
    kills=$((kills + 1))
    [ -s $out/kill.err ] && lost="$lost $(cat $out/kill.err)"
    if [ $status = 0 ]; then cmp $out/kill.st $out/whole.st > /dev/null 2>&1 || lost="$lost other bits"; rm -f $out/kill.st; fi
done 2> /dev/null
train $out/kill.st > $out/kill.out 2> $out/kill.err || lost="$lost $(cat $out/kill.err)"
cmp $out/kill.st $out/whole.st > /dev/null 2>&1 || lost="$lost other bits at the end"
verdict $([ -z "$lost" ]; echo $?) "SIGKILL at 20 random moments: a whole file each time, the same final bits" "$lost"

# sampling
$out/gpt sample --file $out/whole.st --prompt text --tokens 40 > $out/sample.out 2> $out/sample.err
verdict $([ $? = 0 ] && [ "$(wc -m < $out/sample.out)" -eq 45 ] && [ "$(head -c 4 $out/sample.out)" = text ]; echo $?) "sample continues its prompt" "$(cat $out/sample.err)"
$out/gpt sample --file $out/whole.st --prompt text --tokens 40 > $out/again.out
verdict $(cmp $out/sample.out $out/again.out > /dev/null 2>&1; echo $?) "and writes the same again" "other letters"

# Errors: one line that names the cause, and the file is unchanged.
: > $out/empty
printf 'twelve chars' > $out/short
head -c 3000 $out/whole.st > $out/cut.st
sed 's/context 12/context 99/' $out/whole.st > $out/other.st
stops 1 'the file is empty' $out/gpt train $out/empty --file $out/new.st
stops 1 'too short' $out/gpt train $out/short --file $out/new.st
stops 1 "can't be opened" $out/gpt train $out/nowhere --file $out/new.st
stops 1 'not a regular file' $out/gpt train ../examples/common/text.h --file $out
stops 1 'not a regular file' $out/gpt train ../examples/common/text.h --file /dev/null
stops 1 'now others' $out/gpt train ../examples/common/text.h --file $out/whole.st
stops 1 'now others' $out/gpt train ../examples/common/text.c --size "$size" --file $out/whole.st
stops 1 'not of 4_gpt train' $out/gpt train ../examples/common/text.h --file $out/whole.out
stops 1 'cut.st: ' train $out/cut.st
stops 1 "can't be written" train $out/missing/a.st
stops 1 'other.st: ' $out/gpt sample --file $out/other.st
stops 1 "can't be opened" $out/gpt sample --file $out/nowhere
stops 1 '--prompt: ' $out/gpt sample --file $out/whole.st --prompt '☃'
stops 1 '--prompt: ' $out/gpt sample --file $out/whole.st --prompt ''
for bad in '' '--bogus' 'write' 'train --size small' 'train --size' 'sample FILE' 'train FILE --tokens'; do stops 2 '^usage' $out/gpt $bad; done
for steps in 3 1073741824 9223372036854775807 18446744073709551615; do
    stops 2 '^usage' $out/gpt train ../examples/common/text.h --file $out/new.st --size "1 x 8, context 8, batch 4, steps $steps, seed 1"
done
$out/gpt --help > $out/help 2>&1
verdict $([ $? = 0 ] && grep -q '^usage: 4_gpt train' $out/help; echo $?) "--help" "$(cat $out/help)"
NAN_AT=7 train $out/nan.st > $out/nan.out 2> $out/nan.err
verdict $([ $? = 1 ] && grep -q 'not finite after 7 steps' $out/nan.err && [ "$(wc -l < $out/nan.err)" = 1 ]; echo $?) "a loss that is not finite ends it" "$(cat $out/nan.err)"
train $out/nan.st > $out/nan.out 2> $out/nan.err
verdict $([ $? = 0 ] && cmp $out/nan.st $out/whole.st > /dev/null 2>&1; echo $?) "and the file before it is good" "$(cat $out/nan.err)"
(trap '' XFSZ; ulimit -f 8; exec $out/gpt train ../examples/common/text.h --size "$size" --file $out/full.st) > $out/full.out 2> $out/full.err
verdict $([ $? = 1 ] && grep -q 'full.st: .*written' $out/full.err && [ ! -e $out/full.st ]; echo $?) "no space for the file: known at once" "$(cat $out/full.err)"
if [ -e /dev/full ]; then
    train $out/chain.st > /dev/full 2> $out/full.err
    verdict $([ $? = 1 ]; echo $?) "no space for what it prints: status 1" "another status"
fi
[ -z "$(find $out -name '*.part')" ]
verdict $? "no part of a file is left" "$(find $out -name '*.part')"
exit 0
