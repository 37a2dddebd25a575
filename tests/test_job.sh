# SPDX-License-Identifier: MIT-0
# test_job.sh: the main job as a user meets it: options and their errors, a quick run, its files, Ctrl-C, NaN, the same bits everywhere.
out=build/job
. tools/job.sh
pictures=../examples/pictures
omp=
printf '#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n' > $out/omp.c
$CC -fopenmp $out/omp.c -o $out/omp 2> /dev/null && $out/omp && omp=-fopenmp
clean $out/2_mlp "compiles without a warning" ../examples/2_mlp.c ../examples/job.c ../examples/job_figures.c ../examples/data.c $omp
clean $out/1_gate "1_gate compiles without a warning" ../examples/1_gate.c
job="$out/2_mlp --quick --data $pictures --hidden 32,24"

refused --bogus "$job" --bogus
refused --help "$job" --bogus=1
refused stray "$job" stray
for option in data seed seeds epochs batch lr c t map init harden-from shape tau csv json svg log threads; do refused --$option "$job" --$option; done
for bad in 'seed -1' 'seeds 0' 'seeds 1.5' 'epochs 0' 'batch 0' 'batch 3000' 'lr 0' 'lr nan' 'lr 1x' 'c -1' 'c inf' 't 0' 'map cubic' 'init 0.5' 'init soft2' \
    'harden-from 1' 'harden-from -0.1' 'shape round' 'tau 0' 'tau 2' 'threads 0' 'hidden 0' 'hidden 8,,8'; do refused --${bad%% *} "$job" --${bad%% *} "${bad#* }"; done
for option in csv json svg log; do refused --$option "$job" --$option $out/missing/deeper/file; done
for option in csv json; do refused --$option "$job" --$option $out; done
refused --init "$job" --map softplus --init 1
refused --shape "$job" --map sigmoid --shape linear-s --tau 0.001
refused data "$job" --data $out/nowhere
log=$(LGELU_ISA=sse $job 2>&1 > /dev/null); verdict $([ $? = 1 ]; echo $?) "refuses an unknown LGELU_ISA" "$log"
$out/2_mlp --help > $out/help
verdict $([ "$(grep -c '^  --' $out/help)" -ge 22 ]; echo $?) "--help lists the options" "$(grep -c '^  --' $out/help) lines"

# a run and its files
$job --seeds 2 --csv $out/a.csv --json $out/a.json --svg $out/svg --log $out/a.jsonl > $out/a.out 2> $out/a.err
verdict $? "a quick run" "$(cat $out/a.err)"
for arm in gelu lgelu hardened relu switched; do
    verdict $(grep -q "^$arm  *[GRlh]" $out/a.out; echo $?) "the table has $arm" "no such row"
done
verdict $(! grep -q "$(printf '\r')" $out/a.out; echo $?) "plain lines when stdout is no terminal" "a carriage return"
verdict $([ -z "$(find $out -name '*.part')" ]; echo $?) "no part of a file is left" "$(find $out -name '*.part')"
verdict $([ "$(wc -l < $out/a.jsonl)" -eq 28 ]; echo $?) "a line of the log for each epoch and arm" "$(wc -l < $out/a.jsonl) lines, expected 28"
verdict $([ "$(head -1 $out/a.csv)" = arm,seed,epoch,gate,quantity,value ] && ! grep -vq '^[^,]*,[^,]*,[^,]*,[^,]*,[^,]*,[^,]*$' $out/a.csv; echo $?) "the CSV has six columns" "not everywhere"
# the profiles: from the neutral first λ the learned arm itself, without its branch
for option in csv json svg save; do refused --$option "$job" --profiles --$option $out/p; done
$job --seeds 2 --profiles --log $out/p.jsonl > $out/p.out 2> $out/p.err
verdict $? "a run of the profiles" "$(cat $out/p.err)"
learned() { sed 's/"init": "neutral", //; s/, "seconds".*//' | grep '"arm": "lgelu"'; }
verdict $([ "$(grep '"neutral"' $out/p.jsonl | learned | wc -l)" -eq 8 ] && [ "$(grep '"neutral"' $out/p.jsonl | learned)" = "$(learned < $out/a.jsonl)" ]; echo $?) \
    "the neutral profile is that of the learned arm" "their logs differ"
verdict $([ "$(grep -c '^gate[12]  .* ± .* ± .* ± ' $out/p.out)" -eq 2 ] && [ "$(grep -c '^[a-z]* *- [a-z]* ' $out/p.out)" -eq 6 ]; echo $?) \
    "a row for each gate, six correlations" "$(tail -12 $out/p.out)"
if command -v python3 > /dev/null; then
    log=$(python3 - $out 2>&1 <<'PYTHON'
import json, sys
def strict(name): raise ValueError(name)
d = json.load(open(sys.argv[1] + "/a.json"), parse_constant=strict)
for line in open(sys.argv[1] + "/a.jsonl"): json.loads(line, parse_constant=strict)
assert list(d)[-1] == "arms" and {"data", "config"} <= set(d)
assert list(d["arms"]) == ["gelu", "lgelu", "hardened", "relu", "switched"]
for a in d["arms"].values():
    for key in "before", "after", "flips", "max_dlogit", "lambda": assert len(a[key]) == 2, key
    assert all(len(l) == 2 for l in a["lambda"])
assert all(abs(v - 159.577) < 1e-3 for l in d["arms"]["hardened"]["lambda"] for v in l)
assert all(v >= 1 for l in d["arms"]["lgelu"]["lambda"] for v in l)
assert max(d["arms"]["hardened"]["max_dlogit"]) < 0.01 < min(d["arms"]["gelu"]["max_dlogit"])
assert d["arms"]["relu"]["flips"] == d["arms"]["switched"]["flips"] == [0, 0]
PYTHON
    )
    verdict $? "JSON and log are valid and hold what they should" "$(echo "$log" | tail -1)"
else echo "skip JSON and log are valid: no python3 here"; fi
if command -v xmllint > /dev/null; then
    $out/1_gate $out/svg/1_gate.svg > /dev/null
    xmllint --noout $out/svg/*.svg 2> $out/xml.err && [ "$(ls $out/svg/*.svg | wc -l)" -eq 5 ]
    verdict $? "the figures are valid XML" "$(head -1 $out/xml.err)"
else echo "skip the figures are valid XML: no xmllint here"; fi

# the same bits: instruction sets, threads, and arms that branch against arms trained from their first step
prints() { grep -h fingerprint "$1" | tr -d '\n'; }
$job --json $out/bits.json > /dev/null
expected=$(prints $out/bits.json)
for isa in scalar avx2 avx512 neon; do
    LGELU_ISA=$isa $job --json $out/b.json > /dev/null
    verdict $([ "$(prints $out/b.json)" = "$expected" ]; echo $?) "the same bits with LGELU_ISA=$isa" "other fingerprints"
done
if [ "$omp" ]; then
    for threads in 1 2 3; do
        $job --threads $threads --json $out/b.json > /dev/null
        verdict $([ "$(prints $out/b.json)" = "$expected" ]; echo $?) "the same bits on $threads threads" "other fingerprints"
    done
else echo "skip the same bits on any number of threads: no OpenMP here"; fi
$CC -std=c99 -O2 -I.. tools/from_scratch.c ../examples/data.c $IMPLEMENTATION -o $out/from_scratch -lm || exit 1
for share in 0 0.7 0.75; do
    $job --harden-from $share --json $out/b.json > /dev/null
    $out/from_scratch $share $pictures > $out/scratch.out
    for arm in hardened switched; do
        found=$(sed -n "s/^$arm //p" $out/scratch.out)
        verdict $([ "$found" ] && prints $out/b.json | grep -q "$found"; echo $?) "--harden-from $share: $arm has the bits of training from scratch" "it has not"
    done
done

# what ends a run early leaves no file
rm -rf $out/svg $out/c.csv $out/c.json
$job --lr 1e20 --csv $out/c.csv --json $out/c.json --svg $out/svg > $out/c.out 2> $out/c.err
status=$?
[ $status = 1 ] && grep -q 'gelu, seed 1, step [0-9]*: the loss' $out/c.err && [ ! -e $out/c.csv ] && [ ! -e $out/c.json ] && [ -z "$(ls $out/svg)" ]
verdict $? "a loss that is not finite names arm, seed and step" "status $status, $(cat $out/c.err)"
$out/2_mlp --data $pictures --seeds 50 --csv $out/c.csv --json $out/c.json --svg $out/svg > $out/c.out 2> $out/c.err &
sleep 2
kill -INT $!
wait $!
status=$?
[ $status = 130 ] && grep -q 'stopped at' $out/c.err && [ ! -e $out/c.csv ] && [ ! -e $out/c.json ] && [ -z "$(ls $out/svg)" ]
verdict $? "Ctrl-C ends it cleanly" "status $status, $(cat $out/c.err)"
exit 0
