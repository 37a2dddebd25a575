# SPDX-License-Identifier: MIT-0
# test_reluize_outputs.sh: what reluize scores and reports. Networks without a gate stay as they are; continuous outputs are no classes,
# and the report says which rule decided; outputs whose size depends on the data are refused before the work, and a value inside of the
# model is scored instead; leaky ReLUs below a maximum; what stays is grouped; weights that are inputs; identical samples; trials where
# a conversion takes long, the nearest network so far, and how much of the whole is done.
out=build/reluize_outputs
. tools/job.sh
onnx=$(python_with onnx)
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
$CC $RELUIZE $IMPLEMENTATION -o $out/reluize -lm || exit 1

# ---- help: a screen that names every option, and all of it ----
$out/reluize --help > $out/help && $out/reluize --help all > $out/all
awk '{ if (length($0) > 100) exit 1 } END { exit !(NR > 20 && NR <= 50) }' $out/help
verdict $? "--help is one screen" "$(wc $out/help)"
sed -n 's/^    { "\(--*[a-z0-9-]*\)",.*/\1/p' ../examples/reluize/app/reluize.c > $out/options
unnamed=$(while read -r name; do for text in help all; do grep -q -e "$name\b" $out/$text || echo "$name in $text"; done; done < $out/options)
[ $(wc -l < $out/options) -gt 35 ] && [ -z "$unnamed" ]
verdict $? "--help and --help all name each option" "$(wc -l < $out/options) options; missing: $unnamed"
code=2 refused 'OUT.onnx; -o is missing' $out/reluize any.onnx --data any
code=2 refused '--minute: no such option; is it --minutes?' $out/reluize any.onnx --data any -o $out/no.onnx --minute 3
code=2 refused '--rate is for --minutes, --steps and --epochs' $out/reluize any.onnx --data any -o $out/no.onnx --rate 0.01
code=2 refused '--bits is for --int8, --int8-before and --c8' $out/reluize any.onnx --data any -o $out/no.onnx --bits 4
code=2 refused '--bits 5: expected 8 or 4' $out/reluize any.onnx --data any -o $out/no.onnx --bits 5 --int8 $out/no8.onnx
code=2 refused '--batch requires --epochs' $out/reluize any.onnx --data any -o $out/no.onnx --batch 4
code=2 refused '--class-axis -1: expected a number from 0 to 11, or none' $out/reluize any.onnx --data any -o $out/no.onnx --class-axis -1
if [ -z "$onnx" ]; then echo "skip what reluize scores: $no_onnx"; exit 0; fi
$onnx tools/reluize_outputs.py $out || exit 1

# convert NAME DATA OPTIONS: the report is in $out/text and $out/report.json
convert()
{
    name=$1
    data=$2
    shift 2
    $out/reluize $out/$name.onnx --data $out/$data.npy -o $out/out.onnx --report $out/report.json "$@" > $out/text 2> $out/stderr
}
said() { cat $out/stderr $out/text; }
# json EXPRESSION: of the report r
json() { $onnx -c "
import json, sys
r = json.load(open('$out/report.json'))
sys.exit(not ($1))"; }

# ---- networks that are ReLU already ----
convert relu x && cmp $out/relu.onnx $out/out.onnx > $out/stdout 2>&1 && [ "$(grep -c . $out/text)" -eq 1 ] && grep -q '0 gates' $out/text
verdict $? "a network of ReLUs is written as it is, and one line says so" "$(said)"
$onnx -c "
import numpy
numpy.save('$out/few.npy', numpy.load('$out/x.npy')[:50])"
$out/reluize $out/relu.onnx --data $out/few.npy -o $out/out.onnx > $out/text && [ "$(grep -c . $out/text)" -eq 1 ]
verdict $? "without a report it is not measured, and a small test part does not matter" "$(cat $out/text)"
convert relu x --int8 $out/eight.onnx --c $out/relu.c --quiet && [ -s $out/eight.onnx ] && [ -s $out/relu.c ] && grep -q '^in 8 bits ' $out/text &&
    ! grep -q '^before, in 8 bits' $out/text
verdict $? "with --int8 and --c it is also written in 8 bits and as C" "$(said)"
convert wide x --int8 $out/eight.onnx --quiet && grep -q '^in 8 bits: on held-out .* of their deviation more than in floats' $out/text
verdict $? "the report says so if 8 bits lose much" "$(said)"
convert relu x --int8 $out/eight.onnx --quiet && ! grep -q 'more than in floats' $out/text
verdict $? "and nothing if they do not" "$(said)"
convert named x --int8-before $out/before_8.onnx --quiet && convert before_8 x &&
    grep -q '^It is in 8 bits already (QuantizeLinear): convert the network in floats' $out/text && ! grep -q '^Gates' $out/text
verdict $? "of a file in 8 bits, whose gates are not found, the report says what to convert" "$(said)"
rm -f $out/out.onnx
code=1 refused '--augment is for a model with one input, of images' \
    $out/reluize $out/policy.onnx --data $out/x.npy -o $out/out.onnx --steps 2 --augment --early 0 --quiet
code=1 refused '--epochs requires labels, and there are none' \
    $out/reluize $out/policy.onnx --data $out/x.npy -o $out/out.onnx --epochs 1 --early 0 --quiet
[ ! -e $out/out.onnx ]
verdict $? "training that the data do not allow is refused before the conversion"
convert tanh x && cmp $out/tanh.onnx $out/out.onnx > $out/stdout 2>&1 && grep -q "tanh 'g' stays: it saturates" $out/text
verdict $? "a network whose functions all stay is written as it is, and they are named" "$(said)"
code=1 refused "'g' (tanh) stays" $out/reluize $out/tanh.onnx --data $out/x.npy -o $out/no.onnx --strict --quiet

# ---- classes, and what is none ----
convert policy x && grep -q "^The values of 'y' are measured as numbers: .*(--class-axis 1: they are)" $out/text &&
    ! grep -q -e flips -e KL -e nats -e 'will not do' $out/text
verdict $? "several continuous outputs without labels are no classes" "$(said)"
convert policy x --class-axis 1 && grep -q flips $out/text && ! grep -q 'measured as numbers' $out/text
verdict $? "an option says that they are" "$(said)"
code=1 refused '--class-axis 0: dimension 0 of the output is that of the samples' \
    $out/reluize $out/policy.onnx --data $out/x.npy -o $out/no.onnx --class-axis 0 --quiet
convert single x && grep -q '(--class-axis 0: they are)' $out/text && convert single x --class-axis 0 && grep -q flips $out/text
verdict $? "without a dimension of samples, that of the classes may be the first" "$(said)"
for rule in 'softmax:a softmax makes it' 'named:its name says so'; do
    convert ${rule%%:*} x && grep -q flips $out/text && grep -q "since ${rule#*:} (--class-axis none" $out/text
    verdict $? "classes, since ${rule#*:}" "$(said)"
done
convert squeeze images && grep -q 'since the model makes one row of values from an image (--class-axis none' $out/text
verdict $? "classes, since the model makes one row of values from an image" "$(said)"
convert anchors images && grep -q "^The values of 'y' are measured as numbers" $out/text
verdict $? "the anchors of a detector are no classes" "$(said)"

# ---- folders of images that do not fit ----
mkdir -p $out/pictures $out/texts
: > $out/texts/text.txt
for i in 1 2 3; do printf 'P6 2 2 255\nabcdefghijkl' > $out/pictures/$i.ppm; done
code=1 refused 'pictures: expected at least five pictures that can be read, found 3$' \
    $out/reluize $out/anchors.onnx --data $out/pictures -o $out/no.onnx --quiet
code=1 refused 'found 0; .*texts/text.txt: no picture' $out/reluize $out/anchors.onnx --data $out/texts -o $out/no.onnx --quiet
code=1 refused 'pixels each way, or an array' $out/reluize $out/four.onnx --data $out/pictures -o $out/no.onnx --quiet
code=1 refused "examples/pictures: its images have 28 x 28 pixels and 1 channels, and input 'x' takes 8 x 8 and 3:" \
    $out/reluize $out/anchors.onnx --data ../examples/pictures -o $out/no.onnx --quiet

# ---- sizes that depend on data ----
rm -f $out/out.onnx
code=1 refused "the size of output 'selected' depends on the data (NonZero).* such as 'scores'" \
    $out/reluize $out/selected.onnx --data $out/x.npy -o $out/out.onnx --quiet
[ ! -e $out/out.onnx ]
verdict $? "and nothing is written"
convert selected x --output scores && json "r['relus_written'] == 16 or r['relus_written'] == 1" && grep -q "^Outputs whose size depends on the data (NonZero) are not compared" $out/text
verdict $? "a value inside of the model is scored" "$(said)"
cp $out/text $out/inside
convert both x && grep -q "^Outputs whose size depends" $out/text && [ "$(grep '^refitted ' $out/text)" = "$(grep '^refitted ' $out/inside)" ]
verdict $? "an output of a fixed size is found, and has the same figures as the value inside" "$(said)"
code=1 refused "no output and no computed value 'scroes'" $out/reluize $out/selected.onnx --data $out/x.npy -o $out/no.onnx --output scroes --quiet
code=1 refused 'inside of the model, which --within' $out/reluize $out/selected.onnx --data $out/x.npy -o $out/no.onnx --output scores --within 0.1 --quiet

# ---- what stays, what is replaced ----
convert leaky_max x && cmp $out/leaky_max.onnx $out/out.onnx > $out/stdout 2>&1 && grep -q 'Its leaky ReLUs (1) are piecewise linear: --leaky' $out/text
verdict $? "a leaky ReLU below a maximum is named" "$(said)"
for line in '' --no-line; do
    convert leaky_max x --leaky --relus 2 $line && json "r['relus_written'] == 2 and r[r['written']]['max_dlogit'] < 1e-5"
    verdict $? "with --leaky --relus 2 $line it is the same function" "$(said)"
done
json "'cold' not in r and 'kinks' in r"
verdict $? "fitted ReLUs without a refit are not called cold in a JSON report"
convert squeeze images && grep -q '^Gates: 1 replaced by 1 ReLU, 0 smooth functions stay, and 1 piecewise linear one\.' $out/text &&
    grep -q "^  hardsigmoid 't' stays: it is piecewise linear" $out/text
verdict $? "piecewise linear functions that stay are counted and named" "$(said)"
convert sigmoids x && grep -q "^  3 sigmoid stay, such as 'y0': it saturates" $out/text && json "sum(g['relus'] == 0 for g in r['gates']) == 3"
verdict $? "what stays for one reason is one line, and all of it is in the JSON report" "$(said)"
convert weights x && grep -q "^1 of the changed matrices, such as 'V', are inputs of the model" $out/text
verdict $? "a changed matrix that is an input is named" "$(said)"
convert softmax x && ! grep -q 'are inputs of the model' $out/text && ! grep -q 'samples only' $out/text
verdict $? "one that is none is not, and nothing is said of samples that differ" "$(said)"
convert softmax same && grep -q 'samples only 10 differ' $out/text
verdict $? "identical samples are counted" "$(said)"
convert weights x --biases && json "any(l['outcome'] == 'changed' for l in r['layers'])" &&
    grep -q '^Matrices: 1 of 1 changed, in ' $out/text
verdict $? "changed matrices are counted" "$(said)"

# ---- where a conversion takes long ----
$onnx -c "
import numpy
numpy.save('$out/few.npy', numpy.load('$out/x.npy')[:5])"
rm -f $out/out.onnx
code=1 refused 'expected at least 8' $out/reluize $out/softmax.onnx --data $out/few.npy -o $out/out.onnx --quiet
[ ! -e $out/out.onnx ]
verdict $? "nothing is written before the end of a short one"
convert large large --early 0 && cp $out/out.onnx $out/last.onnx &&
    json "r['tried'] and r['tried_samples'] == r['samples'] // 4 and r[r['written']]['held'] <= 0.5 * r['cold']['held']"
verdict $? "the ways are tried on a fourth of the inputs, and the nearest is made from all" "$(said)"
awk '/%/ { if ($1 + 0 < last) exit 1; last = $1 + 0; n++ } END { exit !(n && last <= 100) }' $out/stderr
verdict $? "what is done of the whole never decreases" "$(said)"
OMP_NUM_THREADS=2 convert large large --early 1e9 --quiet && cmp $out/out.onnx $out/last.onnx > $out/stdout 2>&1
verdict $? "the same network with two threads, and whatever is written early" "$(said)"
rm -f $out/out.onnx
$out/reluize $out/large.onnx --data $out/large.npy -o $out/out.onnx --early 0 > $out/text 2> $out/stderr &
job=$!
wait_until [ -s $out/out.onnx ]
kill -INT $job
wait $job
[ $? -eq 130 ] && tail -n 1 $out/stderr | grep -q 'is the nearest network so far: ' && $onnx -c "
import onnx
onnx.load('$out/out.onnx')"
verdict $? "after an interruption the file is the nearest network so far, and a line says so" "$(said)"
exit $bad
