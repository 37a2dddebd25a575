# SPDX-License-Identifier: MIT-0
# test_study_experiments.sh: every experiment of examples/study, quick and on few samples: its table, findings and figures, the same
# CSV on any number of threads and after a stop; the report over all of them.
out=build/study_experiments
. tools/job.sh
study
study stopped
tiny $out/tiny
few="--data $out/tiny --seeds 2 --epochs 2 --batch 90"
all=$out/all

# try NAME NET FIGURES OPTIONS
try()
{
    name=$1
    net=$2
    figures=$3
    shift 3
    what="$name --net $net"
    $out/study $name --net $net --quick "$@" --out $all > $out/a.out 2> $out/a.err
    verdict $? "$what" "$(cat $out/a.err)"
    stem=$all/${name}_$net
    verdict $(grep -q '^What decides:' $out/a.out && grep -q '^Findings' $stem.txt && grep -q '"verdict": ' $stem.json; echo $?) "$what: rules before, findings after" "$(tail -2 $out/a.out)"
    [ "$(ls ${stem}_*.svg | wc -l)" = $figures ] && { ! command -v xmllint > /dev/null || xmllint --noout ${stem}_*.svg 2> $out/xml.err; }
    verdict $? "$what: its figures" "$(ls $all | tr '\n' ' ') $(head -1 $out/xml.err)"
    STOP_AT=${stop:-7} $out/stopped $name --net $net --quick "$@" --save $out/b.st > $out/b.out 2> $out/b.err
    $out/stopped $name --resume $out/b.st --csv $out/b.csv --threads 1 > $out/b.out 2>> $out/b.err
    verdict $(cmp $stem.csv $out/b.csv > /dev/null 2>&1; echo $?) "$what: the same CSV on one thread and after a stop" "$(cat $out/b.err)"
}

try path mlp 1 $few --hidden 12,8 --plan ours --order together,last --teach 0,0.5
try path sine 1 --seeds 2
try plans sine 2 --seeds 2
try grid mlp 2 $few --hidden 12,8
try sweep resnet8 2 --data ../examples/pictures --samples 300 --test-samples 100 --width 1 --epochs 2 --batch 90
try profiles mlp 2 $few --hidden 12,10,10,10,10,8
try ablation mlp 2 $few --hidden 12,8
try reparam mlp 2 $few --hidden 12,8
try regimes mlp 2 $few --hidden 12,8
try regimes gpt 2 --text ../examples/common/text.h --seeds 1 --steps 40 --epochs 2 --arms lgelu
try betas mlp 2 $few --hidden 12,8
try stability gpt 2 --text ../examples/common/text.h
published()                                  # OPTION VALUE ...: what --full sets it to
{
    while [ $# -gt 1 ]; do
        grep -q -e "^  --$1 .*\\[$2\\]\$" $out/full || { echo "--$1: not $2"; return 1; }
        shift 2
    done
}
$out/study stability --full --help > $out/full
wrong=$(published layers 6 heads 6 width 384 context 128 batch 32 steps 5000 dropout 0.2 clip 1 weight-decay 0.01 b1 0.9 b2 0.999 \
    seed 1337 embed-deviation 1 lr 0.0001,0.001,0.003)
verdict $? "stability --full is the published set-up" "$wrong"
wrong=$(published layers 6 width 385)
verdict $([ $? = 1 ]; echo $?) "another width is noticed" "it is not"
stop=1500                                   # of 30 steps a run
# a run that diverged has no score: no finding and no point of a figure is made of it
$out/study plans --net sine --seeds 2 --quick --lr 1e12 --csv $out/far.csv --svg $out/far > $out/far.out 2> $out/a.err
verdict $([ $? = 0 ] && [ "$(grep -c ',diverged,' $out/far.csv)" = 8 ] && ! grep -q 'log10 error:' $out/far.out; echo $?) "plans: runs that diverged have no findings" "$(grep 'log10 error:' $out/far.out | head -1) $(cat $out/a.err)"
verdict $(! grep -q '="nan"' $out/far/plans_sine_effects.svg; echo $?) "plans: runs that diverged are not drawn" "$(grep '="nan"' $out/far/*.svg | head -1)"
$out/study betas --net mlp $few --quick --hidden 12,8 --lr 1e30 --csv $out/far.csv > $out/far.out 2> $out/a.err
verdict $([ $? = 0 ] && grep -q ',diverged,' $out/far.csv && ! grep -q 'log10 bend' $out/far.out; echo $?) "betas: runs that diverged have no findings" "$(grep 'log10 bend' $out/far.out | head -1) $(cat $out/a.err)"
$out/study ablation --net gpt --text ../examples/common/text.h --quick --seeds 2 --steps 10 --epochs 1 --out $out/no_certificate > $out/a.out 2> $out/a.err
verdict $([ $? = 0 ] && ! grep -q certificate $out/no_certificate/ablation_gpt_target.svg; echo $?) "ablation: a network without a certificate has none in its figure" "$(cat $out/a.err)"
try gates mlp 2 $few --hidden 12,8 --warmup 0,3 --activations f32,f16 --lr 1e-3,1e-1
stop=
try convert mlp 2 $few --hidden 12,8 --arms gelu,silu --budget 10 --other $out/tiny
try oui mlp 2 $few --hidden 12,8
try oui resnet8 2 --data ../examples/pictures --samples 300 --test-samples 60 --width 1 --arms relu --epochs 2
$out/study convert --net mlp --quick $few --hidden 12,8 --arms gelu --budget 0 --margin 0.37 --json $out/margin.json > $out/a.out 2> $out/a.err
verdict $(grep -q '"rule": "[^"]*-0.37[^"]*0.37"' $out/margin.json; echo $?) "convert decides by the rise of the loss, within 0.002 nats or --margin" "$(cat $out/a.err)"
# Further training at a rate of 0 changes running statistics only. A refitted network, or one whose biases were corrected, must not notice.
$out/study convert --net resnet8 --quick --seeds 1 --lr 1e-9 --budget 10 --ways biases,refit --arms silu --width 1 --data $out/tiny \
    --csv $out/norms.csv > $out/a.out 2> $out/a.err
awk -F , '/_loss,/ { for (i = 1; i <= NF; i++) if ($i ~ /^(biases|refit)_loss$/) { if ($i in first) last[$i] = $NF; else first[$i] = $NF } }
    END { for (way in first) { d = last[way] - first[way]; if (first[way] > 1 && last[way] > 1 && d < 0.01 && d > -0.01) n++ }; exit n != 2 }' $out/norms.csv
verdict $? "convert: batch statistics do not change a refitted network" "$(grep -E '(biases|refit)_loss' $out/norms.csv | paste -sd' ')"
if command -v python3 > /dev/null; then
    for change in 'sweep_resnet8 /^9,hard,/s/,best,/,best,1/' 'regimes_mlp s/,tau_weights_25,/,tau_weights_25,1/' 'betas_mlp s/,omega1,/,omega1,1/' \
        'stability_gpt s/,dead_percent,/,dead_percent,1/' 'gates_mlp s/,relu,/,swap,/;s/,gelu,/,relu,/;s/,swap,/,gelu,/' \
        'oui_mlp s/,oui_pairwise,0/,oui_pairwise,2/'; do
        stem=${change%% *}
        python3 tools/siblings_check.py $all/$stem.csv $all/$stem.json 2> $out/check.err
        verdict $? "$stem: what it says follows from its CSV" "$(cat $out/check.err)"
        sed "${change#* }" $all/$stem.csv > $out/$stem.csv
        verdict $(! python3 tools/siblings_check.py $out/$stem.csv $all/$stem.json 2> $out/check.err; echo $?) "$stem: another CSV is noticed" "it is not"
    done
else echo "skip what the siblings say follows from their CSV: no python3 here"; fi
stop=3000                                   # of 640 steps a run
try control mlp 4 --seeds 2 --steps 20480 --arms relu,gelu
stop=
if command -v python3 > /dev/null; then
    python3 tools/control_check.py $all/control_mlp.csv $all/control_mlp.json 2> $out/check.err
    verdict $? "control: its findings follow from its CSV" "$(cat $out/check.err)"
    cp $all/control_mlp.json $out/off.json
    sed 's/,return,-/,return,/' $all/control_mlp.csv > $out/off.csv
    cp $all/control_mlp.txt $out/off.txt
    verdict $(! python3 tools/control_check.py $out/off.csv $out/off.json 2> $out/check.err; echo $?) "control: those of another CSV are noticed" "they are not"
else echo "skip control: its findings follow from its CSV: no python3 here"; fi
# a verdict is bold where Holm's correction leaves it, and nowhere else; a finding that it removed must not look like one
rm -rf $out/five
$out/study sweep --net mlp $few --hidden 12,8 --quick --seeds 5 --out $out/five > $out/a.out 2> $out/a.err
verdict $(grep -q '"survives_holm": true' $out/five/*.json && grep -q '"survives_holm": false' $out/five/*.json; echo $?) "five seeds: some verdicts are left, others are not" "$(cat $out/a.err)"
other=
for stem in $(ls $all/*.json $out/five/*.json | sed 's/\.json$//'); do
    [ "$(grep -c '"survives_holm": true' $stem.json)" = "$(grep -c '  \*\*\(not \)\?seen\*\*$' $stem.txt)" ] || other="$other $(basename $stem)"
done
verdict $([ -z "$other" ]; echo $?) "bold verdicts are those that Holm's correction leaves" "$other"
not_finite=$(grep -El '="-?(inf|nan)"|,-?(inf|nan)|[ "]-?(inf|nan),' $all/*.svg)
verdict $([ -z "$not_finite" ]; echo $?) "all coordinates of the figures are finite" "$not_finite"
if command -v python3 > /dev/null; then
    other=$(python3 tools/figures_check.py $all/*.svg)
    verdict $? "the figures can be read" "$(echo "$other" | head -3)"
else echo "skip the figures can be read: no python3 here"; fi
$out/study report --out $all > $out/report.out 2> $out/report.err
verdict $([ $? = 0 ] && [ "$(grep -c '<h2 ' $all/report.html)" = "$(ls $all/*.json | wc -l)" ] && [ "$(grep -c '<figure>' $all/report.html)" = "$(ls $all/*.svg | wc -l)" ]; echo $?) "the report holds them all" "$(cat $out/report.err)"
if command -v xmllint > /dev/null; then
    xmllint --html --noout $all/report.html 2> $out/xml.err
    verdict $(! grep -v -e 'Tag .* invalid' -e '^ *^' -e '<' $out/xml.err | grep -q 'error'; echo $?) "and is HTML" "$(head -1 $out/xml.err)"
else echo "skip the report is HTML: no xmllint here"; fi
browser=
for name in chromium chromium-browser google-chrome; do command -v $name > /dev/null && browser=$name && break; done
if [ "$browser" ] && timeout 60 $browser --headless --no-sandbox --disable-gpu --user-data-dir=$PWD/$out/profile --virtual-time-budget=2000 --dump-dom \
    file://$PWD/$all/report.html > $out/dom.html 2> $out/browser.err && [ -s $out/dom.html ]; then
    verdict $([ "$(grep -c '<figure><img' $out/dom.html)" = "$(ls $all/*.svg | wc -l)" ] && ! grep -q '<script' $out/dom.html; echo $?) "a browser shows its figures; it needs no script" "$(head -1 $out/browser.err)"
else echo "skip a browser shows the report: no headless Chromium here"; fi
code=1
refused -- $out/study report
refused nothing $out/study report --out $out/tiny
# a folder that another program wrote: its files are shown as text and never run; what is no file, or too large, is reported
hostile=$out/hostile
rm -rf $hostile
mkdir $hostile
{ echo '{"claim": "<script>alert(1)</script>", "rule": "<b>", "mean": 1, "interval": [0, 2], "seeds": "<i>", "verdict": "\"><script>"}'
  echo '{"claim": "cut'
  printf '{"claim": "long", "interval": [%0200d\n' 1; } > $hostile/swap_mlp.json
cp $hostile/swap_mlp.json "$hostile/swap_\"><script>.json"
echo '{"command": "</code><script>alert(2)</script>", "commit": "<script>"}' > $hostile/swap_mlp.jsonl
echo '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(3)</script></svg>' > $hostile/swap_mlp_a.svg
echo '</pre><script>alert(4)</script>' > $hostile/swap_mlp.txt
$out/study report --out $hostile > $out/report.out 2> $out/report.err
verdict $([ $? = 0 ] && ! grep -q '<script' $hostile/report.html && [ "$(grep -c '&lt;script' $hostile/report.html)" = 7 ]; echo $?) \
    "a report of a hostile folder holds no script" "$(cat $out/report.err) $(grep -c '&lt;script' $hostile/report.html)"
rm $hostile/swap_mlp.txt
mkfifo $hostile/swap_mlp.txt
refused 'swap_mlp.txt: not a file' timeout 20 $out/study report --out $hostile
rm $hostile/swap_mlp.txt
ln -s /dev/zero $hostile/swap_mlp.txt
refused 'swap_mlp.txt: not a file' timeout 20 $out/study report --out $hostile
rm $hostile/swap_mlp.txt
for i in $(seq 300); do : > $hostile/swap_$i.json; done
refused 'too long' $out/study report --out $hostile
rm $hostile/swap_[0-9]*.json
truncate -s 100G $hostile/swap_mlp.txt 2> /dev/null && refused 'swap_mlp.txt: not a file' timeout 20 $out/study report --out $hostile
code=2
refused --net $out/study grid --net gpt
refused --env $out/study control --env pong
refused --arms $out/study control --arms hardened
refused --hidden $out/study control --hidden 64,,64
refused --steps $out/study control --steps 1000
refused --batch $out/study control --batch 300
refused --gae $out/study control --gae 1
refused --clip $out/study control --clip 1,2
refused --arms $out/study control --arms silu
refused --activations $out/study control --activations bf16
refused --activations $out/study swap --data $out/tiny --activations f16
refused --keep $out/study control --keep $out/keep
# what a report cannot do without is asked for before any training
fed="--data $out/tiny --hidden 12,8"
refused rising $out/study gates $fed --holdout 30 --lr 1e-2,1e-3
refused --b1 $out/study gates $fed --holdout 30 --b1 0.9,0.99
refused --lr $out/study oui $fed --lr 1e-3
refused --b1 $out/study betas $fed --b2 0.9
refused --lr $out/study stability --text ../examples/common/text.h --lr 1e-3
refused --arms $out/study stability --text ../examples/common/text.h --arms relu,lgelu
refused --t $out/study grid $fed --t 0.1
refused --c $out/study sweep --net mlp $fed --c 1
refused --init $out/study profiles --net mlp $fed --init soft
refused --hold $out/study plans --net mlp $fed --hold 0.75,0
refused --plan $out/study plans --net mlp $fed --plan ours
refused --target $out/study ablation $fed --target 10
for experiment in grid sweep profiles ablation reparam; do
    refused "--arms: $experiment needs" $out/study $experiment --net mlp $fed --arms relu,switched
done
exit 0
