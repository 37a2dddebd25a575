# SPDX-License-Identifier: MIT-0
# test_study.sh: examples/study as a user meets it: options and their errors, quick runs, their files, Ctrl-C, NaN, the same bits everywhere.
out=build/study
. tools/job.sh
study
tiny $out/tiny
small="$out/study swap --data $out/tiny --hidden 12,8 --epochs 2 --batch 90 --seeds 2"

# what is wrong on the command line ends with 2, what is wrong with files with 1, each with one line that names the option
code=2
refused --bogus "$small" --bogus
refused --help "$small" --bogus=1
refused stray "$small" stray
refused swop $out/study swop
refused --help $out/study --quick
for option in net data seed seeds epochs batch lr c t map init plan hold harden-from harden-until shape tau target csv json svg log keep save resume threads arms \
    b1 b2 clip optimiser holdout; do refused --$option "$small" --$option; done
for wrong in 'seed -1' 'seeds 0' 'seeds 1.5' 'epochs 0' 'batch 0' 'lr 0' 'lr nan' 'lr 1x' 'lr 1e-3,' 'lr 1e-3,0.001' 'c -1' 'c inf' 't 0' 'map cubic' 'init 0.5' \
    'init soft2' 'harden-from 1' 'harden-from -0.1' 'harden-until 0.1' 'shape round' 'order both' 'teach 2' 'tau 0' 'tau 2' 'target 0.5' 'threads 0' 'arms gelu,mish' 'arms gelu,gelu' \
    'arms reestimated' 'net rnn' 'optimiser lion' 'b1 1'; do refused --${wrong%% *} "$small" --${wrong%% *} "${wrong#* }"; done
refused --init "$small" --map softplus --init 1
refused --shape "$small" --map sigmoid --shape linear-s --tau 0.001
refused 'two options' "$small" --csv $out/same --json $out/same
code=1
for wrong in 'batch 3000' 'hidden 0' 'hidden 8,,8' 'holdout 300'; do refused --${wrong%% *} "$small" --${wrong%% *} "${wrong#* }"; done
for option in csv json svg log save keep; do refused --$option "$small" --$option $out/missing/deeper/file; done
for option in csv json save log; do refused --$option "$small" --$option $out; done
refused data $out/study swap --data $out/nowhere
code=
log=$(LGELU_ISA=sse $small 2>&1 > /dev/null); verdict $([ $? = 2 ]; echo $?) "refuses an unknown LGELU_ISA" "$log"
$out/study --help > $out/help
verdict $([ $? = 0 ] && [ "$(grep -c '^  --' $out/help)" -ge 40 ]; echo $?) "--help lists the options" "$(grep -c '^  --' $out/help) lines"

# a run and its files
$small --csv $out/a.csv --json $out/a.json --svg $out/svg --log $out/a.jsonl --keep $out/keep > $out/a.out 2> $out/a.err
verdict $? "a small run" "$(cat $out/a.err)"
for arm in gelu lgelu hardened relu switched frozen held; do
    verdict $(grep -q "^$arm  *[GRlhλ]" $out/a.out; echo $?) "the table has $arm" "no such row"
done
verdict $(! grep -q "$(printf '\r')" $out/a.out; echo $?) "plain lines when stdout is no terminal" "a carriage return"
verdict $([ "$(wc -l < $out/a.jsonl)" -eq 29 ]; echo $?) "a line of the log for the command, each epoch and arm" "$(wc -l < $out/a.jsonl) lines, expected 29"
verdict $([ "$(head -1 $out/a.csv)" = arm,seed,epoch,gate,quantity,value ] && ! grep -vq '^[^,]*,[^,]*,[^,]*,[^,]*,[^,]*,[^,]*$' $out/a.csv &&
    ! grep -q -e nan -e seconds $out/a.csv; echo $?) "the CSV has six columns, no nan and no clock" "not everywhere"
verdict $(grep -q 'not decidable at this size$' $out/a.out && grep -q '^What decides:' $out/a.out; echo $?) "rules and verdicts are printed" "$(tail -3 $out/a.out)"
$small --lr 1e-3,1e30 --c 1,2 --arms gelu,hardened --csv $out/x.csv --json $out/x.json > $out/x.out 2> $out/x.err
verdict $? "options with several values are axes; a run that diverges is one of them" "$(cat $out/x.err)"
verdict $([ "$(head -1 $out/x.csv)" = lr,c,arm,seed,epoch,gate,quantity,value ] && [ "$(grep -c ',before,' $out/x.csv)" = 6 ] && grep -q '^1e+30,,gelu,1,,,diverged,' $out/x.csv; echo $?) \
    "gelu is run once for both c, hardened twice" "$(grep -c ',before,' $out/x.csv) runs"
verdict $([ "$(ls $out/keep | wc -l)" = 14 ] && grep -aq '"gate1":"relu"' $out/keep/mlp_hardened_1.safetensors && grep -aq '"gate1":"gelu"' $out/keep/mlp_gelu_1.safetensors; echo $?) \
    "--keep leaves every final network, the hardened one with ReLU gates" "$(ls $out/keep)"
log=$($out/study swap --net gpt --quick --text ../examples/common/text.h --layers 1 --width 8 --steps 2 --seeds 1 --arms gelu --keep $out/keep_gpt 2>&1 > /dev/null)
verdict $([ $? = 0 ] && grep -aq '"test_loss":"[0-9]' $out/keep_gpt/gpt_gelu_1.safetensors; echo $?) "--keep of a network whose score is its loss" "$log"
if command -v python3 > /dev/null; then
    log=$(python3 - $out 2>&1 <<'PYTHON'
import json, sys
def strict(name): raise ValueError(name)
d = json.load(open(sys.argv[1] + "/a.json"), parse_constant=strict)
for line in open(sys.argv[1] + "/a.jsonl"): json.loads(line, parse_constant=strict)
assert list(d)[-1] == "arms" and {"data", "config", "findings"} <= set(d)
assert list(d["arms"]) == ["gelu", "lgelu", "hardened", "relu", "switched", "frozen", "held"]
for a in d["arms"].values():
    for key in "before", "after", "flips", "max_dlogit", "lambda": assert len(a[key]) == 2, key
    assert all(len(l) == 2 for l in a["lambda"])
for arm in "hardened", "frozen", "held": assert all(abs(v - 159.577) < 1e-3 for l in d["arms"][arm]["lambda"] for v in l)
assert all(v >= 1 for l in d["arms"]["lgelu"]["lambda"] for v in l)
assert max(d["arms"]["hardened"]["max_dlogit"]) < 0.01 < min(d["arms"]["gelu"]["max_dlogit"])
assert d["arms"]["relu"]["flips"] == d["arms"]["switched"]["flips"] == [0, 0]
x = json.load(open(sys.argv[1] + "/x.json"), parse_constant=strict)
assert len(x["variants"]) == 4 and x["arms"]["gelu"]["lr"] == 0.001
PYTHON
    )
    verdict $? "JSON and log are valid and hold what they should" "$(echo "$log" | tail -1)"
else echo "skip JSON and log are valid: no python3 here"; fi
if command -v xmllint > /dev/null; then
    xmllint --noout $out/svg/*.svg 2> $out/xml.err && [ "$(ls $out/svg/*.svg | wc -l)" -eq 4 ]
    verdict $? "the figures are valid XML" "$(head -1 $out/xml.err)"
else echo "skip the figures are valid XML: no xmllint here"; fi

# the same bytes on any number of threads and any instruction set; arms that branch against arms trained from their first step
run="$out/study swap --quick --data ../examples/pictures --plan paper --holdout 0 --hidden 32,24"
$run --threads 1 --csv $out/bits.csv > /dev/null
for isa in scalar avx2 avx512 neon; do
    LGELU_ISA=$isa $small --csv $out/b.csv --json $out/b.json > /dev/null
    verdict $(cmp $out/b.csv $out/a.csv > /dev/null && cmp $out/b.json $out/a.json > /dev/null; echo $?) "the same CSV and JSON with LGELU_ISA=$isa" "others"
done
for threads in 1 2 3; do
    LGELU_ISA= $run --threads $threads --csv $out/b.csv > /dev/null 2> $out/b.err
    if grep -q 'without OpenMP' $out/b.err; then echo "skip the same CSV on any number of threads: no OpenMP here"; break; fi
    verdict $(cmp $out/b.csv $out/bits.csv > /dev/null; echo $?) "the same CSV on $threads threads" "another"
done
# the fractions of the plan come from the header: a study linked with another preset is one with those fractions as options
cat > $out/preset.c <<'C'
#define LGELU_TRAINER
#include "lgelu.h"
lgelu_training __wrap_lgelu_training_to_relu(float lr, long steps);
lgelu_training __wrap_lgelu_training_to_relu(float lr, long steps)
{
    lgelu_training p = lgelu_training_defaults(lr, steps);
    p.hold = steps / 8 * 5;
    p.hardening.begin = steps / 8 * 3;
    p.hardening.end = steps / 8 * 7;
    return p;
}
C
$CC -std=c99 -O1 -I.. $out/preset.c $STUDY $IMPLEMENTATION -Wl,--wrap=lgelu_training_to_relu -o $out/other_preset -lm || exit 1
$out/other_preset ${small#* } --csv $out/preset.csv > $out/preset.out 2>&1 &&
    $small --hold 0.625 --harden-from 0.375 --harden-until 0.875 --csv $out/given.csv > $out/given.out 2>&1 &&
    cmp $out/preset.csv $out/given.csv > $out/cmp.out 2>&1 && ! cmp -s $out/preset.csv $out/a.csv
verdict $? "the plan's fractions are those of the header's preset" "$(cat $out/cmp.out $out/preset.out | tail -n 1)"
$CC -std=c99 -O1 -I.. tools/from_scratch.c ../examples/common/data.c $IMPLEMENTATION -o $out/from_scratch -lm || exit 1
for share in 0 0.7 0.75; do
    $run --harden-from $share --csv $out/b.csv > /dev/null
    $out/from_scratch $share ../examples/pictures > $out/scratch.out
    for arm in hardened switched; do
        found=$(sed -n "s/^$arm //p" $out/scratch.out)
        verdict $([ "$found" ] && grep -q "^$arm,1,,,fingerprint,$found\$" $out/b.csv; echo $?) "--harden-from $share: $arm has the bits of training from scratch" "it has not"
    done
done

# every network
for net in lenet resnet8 vit gpt sine tabular; do
    data="--data ../examples/pictures"
    case $net in
    gpt) data="--text ../examples/common/text.h" ;;
    sine) data= ;;
    tabular)
        data="--data $out/table.csv"
        awk 'BEGIN { srand(5); print "age,sex,income"; for (i = 0; i < 600; i++) { a = rand(); b = rand() < 0.5; print a * 90 "," (b ? "f" : "m") "," (a + b * rand() > 0.8 ? "high" : "low") } }' > $out/table.csv ;;
    esac
    $out/study swap --net $net --quick $data --samples 300 --test-samples 100 --json $out/n.json > $out/n.out 2> $out/n.err
    verdict $([ $? = 0 ] && grep -q '^hardened ' $out/n.out; echo $?) "swap --quick --net $net" "$(cat $out/n.err)"
    [ $net != resnet8 ] || verdict $(grep -q '^reestimated ' $out/n.out; echo $?) "with batch normalisation there is the arm reestimated" "no such row"
    [ $net != tabular ] || verdict $(grep -q '"score": "auc"' $out/n.json; echo $?) "two classes of a table are scored by the area under the curve" "another score"
done

# outputs that are no files are written plainly, links are followed, and what can't be written is said
ln -sf target.csv $out/link.csv
$small --arms relu --csv $out/link.csv > /dev/null
verdict $([ -L $out/link.csv ] && [ -s $out/target.csv ]; echo $?) "a symbolic link stays one, its file is written" "$(ls -l $out/link.csv)"
mkfifo $out/fifo
cat $out/fifo > $out/fifo.csv &
$small --arms relu --csv $out/fifo > /dev/null
wait $!
verdict $([ -p $out/fifo ] && cmp $out/fifo.csv $out/target.csv > /dev/null; echo $?) "a FIFO stays one and gets the CSV" "$(ls -l $out/fifo)"
if [ -e /proc/self/fd/1 ]; then
    verdict $([ "$($small --arms relu --csv /dev/stdout | grep -c ,before,)" = 2 ]; echo $?) "--csv /dev/stdout prints it" "it does not"
    $small --arms relu --csv /dev/stdout > $out/stdout.out
    verdict $(grep -q '^relu,1,,,before,' $out/stdout.out && grep -q '^relu  *ReLU' $out/stdout.out; echo $?) "also where that is a file" "$(head -1 $out/stdout.out)"
else echo "skip --csv /dev/stdout: no /proc here"; fi
if mknod $out/null c 1 3 2> /dev/null && mknod $out/full c 1 7 2> /dev/null && (: > $out/null) 2> /dev/null; then
    $small --arms relu --csv $out/null > /dev/null
    verdict $([ $? = 0 ] && [ -c $out/null ]; echo $?) "a device stays one" "$(ls -l $out/null)"
    for option in csv json log; do
        $small --arms relu --$option $out/full > /dev/null 2> $out/full.err
        verdict $([ $? = 1 ] && [ -c $out/full ] && [ "$(wc -l < $out/full.err)" = 1 ] && grep -q -e "--$option: " $out/full.err; echo $?) "--$option on a full device is said" "$(cat $out/full.err)"
    done
else echo "skip devices as outputs: mknod is not allowed here"; fi
if [ -c /dev/full ]; then
    $small --arms relu > /dev/full 2> $out/full.err
    verdict $([ $? = 1 ] && grep -q '^study: standard output: ' $out/full.err; echo $?) "standard output on a full device is said" "$(cat $out/full.err)"
fi
mkdir -p $out/broken/a $out/broken/b
for i in 1 2 3 4 5 6 7 8 9; do head -c 100 ../examples/pictures/train_0.png > $out/broken/a/$i.png; cp $out/broken/a/$i.png $out/broken/b; done
code=1
refused broken $out/study swap --data $out/broken
code=

# what ends a run early leaves no file, and the old one as it was
rm -rf $out/svg
echo old > $out/c.csv
$small --lr 1e20 --csv $out/c.csv --json $out/c.json --svg $out/svg > $out/c.out 2> $out/c.err
status=$?
[ $status = 1 ] && [ "$(wc -l < $out/c.err)" = 1 ] && grep -q 'seed 1, step [0-9]*: the loss' $out/c.err && [ "$(cat $out/c.csv)" = old ] && [ ! -e $out/c.json ] && [ -z "$(ls $out/svg)" ]
verdict $? "a loss that is not finite names arm, seed and step" "status $status, $(cat $out/c.err)"
$small --seeds 999 --epochs 200 --csv $out/c.csv --json $out/c.json --svg $out/svg > $out/c.out 2> $out/c.err &
sleep 1
kill -INT $!
wait $!
status=$?
[ $status = 130 ] && grep -q 'stopped at' $out/c.err && [ "$(cat $out/c.csv)" = old ] && [ ! -e $out/c.json ] && [ -z "$(ls $out/svg)" ]
verdict $? "Ctrl-C ends it cleanly" "status $status, $(cat $out/c.err)"
verdict $([ -z "$(find $out -name '*.part')" ]; echo $?) "no part of a file is left" "$(find $out -name '*.part')"
exit 0
