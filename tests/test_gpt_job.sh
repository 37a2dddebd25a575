# SPDX-License-Identifier: MIT-0
# test_gpt_job.sh: 4_transformer as a user meets it: training stopped anywhere and resumed, sampling, the study, what is refused.
out=build/gpt_job
. tools/job.sh
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
clean $out/plain "compiles without a warning" ../examples/4_transformer.c ../examples/text.c
stoppable $out/gpt ../examples/4_transformer.c ../examples/text.c
small="--text ../examples/text.h --layers 2 --heads 2 --width 8 --context 12 --batch 3 --steps 20 --every 6 --dropout 0.2"
files() { echo "--csv $out/$1.csv --log $out/$1.jsonl --svg $out/$1.svg"; }
same() { for kind in csv jsonl svg st; do cmp $out/$1.$kind $out/$2.$kind || return 1; done; tail -1 $out/$1.out > $out/a; tail -1 $out/$2.out > $out/b; cmp $out/a $out/b; }

for gate in lambda hardened switched; do
    begin="$out/gpt train $small --gate $gate"
    $begin $(files whole) --save $out/whole.st > $out/whole.out 2> $out/whole.err
    verdict $? "train --gate $gate" "$(cat $out/whole.err)"
    $begin $(files often) --save $out/often.st --save-every 1 > $out/often.out
    verdict $(same whole often > $out/same.log 2>&1; echo $?) "$gate: saving more often changes no result" "$(cat $out/same.log)"
    chain 19 "$begin $(files chain) --save $out/chain.st" "$out/gpt train --text ../examples/text.h --resume $out/chain.st $(files chain)" "$gate: "
    verdict $(same whole chain > $out/same.log 2>&1; echo $?) "$gate: it ends with the same curve, figure and file, bit for bit" "$(cat $out/same.log)"
    $out/gpt train --text ../examples/text.h --resume $out/chain.st $(files chain) > $out/chain.out 2> $out/chain.err
    verdict $(same whole chain > $out/same.log 2>&1; echo $?) "$gate: a finished run only writes its files again" "$(cat $out/same.log)"
done
$out/gpt sample --text ../examples/text.h --load $out/whole.st --prompt 'text' --tokens 40 > $out/sample.out 2> $out/sample.err
verdict $([ $? = 0 ] && [ "$(wc -c < $out/sample.out)" -ge 44 ] && [ "$(head -c 4 $out/sample.out)" = text ]; echo $?) "sample goes on from its prompt" "$(cat $out/sample.err)"

# the study: rows as they come, taken over by the next one
study="$out/gpt study $small --rates 1e-3,1e30 --seeds 2"
verdict $($out/gpt study $small --rates 1e-3,1e30 > /dev/null 2>&1; [ $? = 1 ]; echo $?) "study refuses a rate that is none" "it does not"
study="$out/gpt study $small --rates 1e-3,5 --seeds 2"
$study --csv $out/study.csv > $out/study.out 2> $out/study.err
verdict $([ $? = 0 ] && [ "$(wc -l < $out/study.csv)" -eq 22 ]; echo $?) "study writes a row for each run" "$(cat $out/study.err), $(wc -l < $out/study.csv) lines"
STOP_AT=130 $study --csv $out/part.csv > $out/part.out 2> $out/part.err
verdict $([ $? = 130 ] && [ "$(wc -l < $out/part.csv)" -eq 8 ]; echo $?) "Ctrl-C keeps the rows that are done" "$(wc -l < $out/part.csv) lines, $(cat $out/part.err)"
printf '0.001,switched,1337,3.1' >> $out/part.csv                     # cut in the middle of a row
STOP_AT=300 $study --resume $out/part.csv > $out/part.out 2> $out/part.err
verdict $([ $? = 0 ] && cmp $out/part.csv $out/study.csv; echo $?) "--resume trains the missing runs only and ends with the same file" "$(cat $out/part.err)"
$out/gpt study $small --rates 1e-3 --steps 21 --resume $out/study.csv > $out/part.out 2> $out/part.err
verdict $([ $? = 1 ] && grep -q 'is not of this study' $out/part.err; echo $?) "another study's rows are refused" "$(cat $out/part.err)"

# refusals: one line that names what is wrong, status 1 or 2, and no harm to the file
kept=$out/whole.st
most=2
cp $kept $kept.was
: > $out/empty
printf 'twelve chars' > $out/short
head -c 3000 $out/whole.st > $out/cut.st
sed 's/"curve":"0x/"curve":"zx/' $out/whole.st > $out/bad.st
refused 'the file is empty' $out/gpt train --text $out/empty
refused 'are too few' $out/gpt train --text $out/short
refused "can't be opened" $out/gpt train --text $out/nowhere
refused 'another text' $out/gpt train --text ../examples/text.c --resume $out/whole.st
refused '--width: ' $out/gpt train --text ../examples/text.h --resume $out/whole.st --width 16
refused '--gate: ' $out/gpt train --text ../examples/text.h --resume $out/whole.st --gate relu
refused "can't be read" $out/gpt train --text ../examples/text.h --resume $out/nowhere
refused 'not saved by train' $out/gpt train --text ../examples/text.h --resume $out/whole.csv
refused 'cut.st: ' $out/gpt train --text ../examples/text.h --resume $out/cut.st
refused "its curve can't be read" $out/gpt train --text ../examples/text.h --resume $out/bad.st
refused "can't be written" $out/gpt train $small --save $out/missing/a.st
refused '--gate square' $out/gpt train $small --gate square
refused 'sample needs --load' $out/gpt sample
refused '--prompt: ' $out/gpt sample --text ../examples/text.h --load $out/whole.st --prompt '☃'
NAN_AT=7 $out/gpt train $small --save $out/nan.st > $out/nan.out 2> $out/nan.err
verdict $([ $? = 1 ] && grep -q 'not finite after 7 steps' $out/nan.err; echo $?) "NaN stops it, naming the step" "$(cat $out/nan.err)"
$out/gpt train --text ../examples/text.h --resume $out/nan.st > $out/nan.out 2> $out/nan.err
verdict $([ $? = 0 ]; echo $?) "and the checkpoint before it is good" "$(cat $out/nan.err)"
[ -z "$(find $out -name '*.part')" ]
verdict $? "no part of a file is left" "$(find $out -name '*.part')"
exit 0
