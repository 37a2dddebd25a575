# SPDX-License-Identifier: MIT-0
# test_onnx.sh: networks as ONNX files, judged by others: onnx.checker (Debian: python3-onnx), ONNX Runtime (node and the package
# onnxruntime-node: npm install --ignore-scripts --prefix build/onnxruntime onnxruntime-node, or anywhere that NODE_PATH names),
# the evaluator (onnx_run.h), and PyTorch (Debian: python3-torch), whose own files are evaluated; and reluize, from PyTorch's networks
# and data to ReLU networks.
CC=${CC:-cc}
out=build/onnx
mkdir -p $out/nets $out/torch
. tools/verdict.sh
onnx=$(python_with onnx)
torch=$(python_with torch.onnx)
onnx_runtime && runtime=yes || runtime=
OMP_NUM_THREADS=1
export OMP_NUM_THREADS


library="${IMPLEMENTATION:-tools/lgelu.c} -lm"
$CC -std=c99 -O1 $WARNINGS tools/onnx_nets.c $PARTS_FOLDER/onnx_out.o $PARTS_FOLDER/data.o $library -o $out/onnx_nets || exit 1
$CC -std=c99 -O1 $WARNINGS tools/onnx_evaluate.c $ONNX_RUN $library -o $out/onnx_evaluate || exit 1

echo "# our networks, written"
if $out/onnx_nets $out/nets > $out/list; then echo "ok $(wc -l < $out/list) networks become ONNX files"
else echo "FAIL networks become ONNX files"; exit 1; fi
if [ -n "$onnx" ]; then $onnx tools/onnx_check.py $out/list $out/nets || bad=1
else echo "skip every file passes onnx.checker: $no_onnx"; fi
if [ -n "$runtime" ]; then node tools/onnx_run.js $out/list $out/nets 1e-5 || bad=1
else echo "skip ONNX Runtime's outputs are ours: $no_runtime"; fi
echo "# and evaluated"
$out/onnx_evaluate $out/list $out/nets 1e-6 || bad=1

if [ -n "$torch" ]; then
    echo "# networks of PyTorch, evaluated"
    if $torch tools/onnx_torch.py $out/torch > $out/torch.list 2> $out/torch.log; then
        $out/onnx_evaluate $out/torch.list $out/torch 1e-5 || bad=1
    else echo "FAIL networks of PyTorch: $(tail -n 1 $out/torch.log)"; bad=1; fi
else echo "skip networks of PyTorch: $no_torch"; fi

echo "# reluize"
$CC $RELUIZE ${IMPLEMENTATION:-tools/lgelu.c} -lm -o $out/reluize || exit 1
# the exit status and how many lines were said
outcome() { "$@" > $out/stdout 2> $out/stderr; echo $? $(($(wc -l < $out/stderr))); }
r="$out/reluize --quiet"
three_classes 400 > $out/table.csv
model=$out/nets/mlp_lambda.onnx
rm -f $out/table.onnx
[ "$(outcome $r $model --data $out/table.csv -o $out/table.onnx --epochs 20 --rate 0.01 --rival --report $out/table.json)" = "0 0" ] &&
    grep -q Relu $out/table.onnx && ! grep -a -q "$(printf '"\003Erf')" $out/table.onnx && grep -q '"tuned": {"score": 100,' $out/table.json &&
    grep -q '"rival": {"score": ' $out/table.json && grep -q '"written": "\(tuned\|rival\)"' $out/table.json
verdict $? "reluize: a table of numbers, a ReLU network and a report" "$(tail -n 1 $out/stderr)"
# reluize --within: one ReLU a gate where that is near enough, more where it is not, and a line where nothing is
field() { sed -n "s/.*\"$1\": {.*\"$2\": \([0-9.e-]*\).*/\1/p" $3; }
count() { sed -n 's/.*"relus": \([0-9]*\), "line".*/\1/p' $1 | awk '{ n += $1 } END { print n }'; }
within() { $r $model --data $out/table.csv -o $out/within$1.onnx --within $1 --report $out/within$1.json > $out/within$1.txt 2> $out/stderr; }
within 0.1 && within 1e-5 && within 1e-9
verdict $? "reluize: --within" "$(tail -n 1 $out/stderr)"
[ "$(count $out/within0.1.json)" = 2 ] && grep -q '"holds": true' $out/within0.1.json && grep -q '"written": "refitted"' $out/within0.1.json
verdict $? "reluize --within 0.1: one ReLU a gate is enough" "$(count $out/within0.1.json) ReLUs"
[ "$(count $out/within1e-5.json)" -gt 2 ] && [ "$(count $out/within1e-5.json)" -lt 12 ] && grep -q '"holds": true' $out/within1e-5.json &&
    [ "$(awk -v a="$(field within divergence $out/within1e-5.json)" -v b="$(field refitted divergence $out/within1e-5.json)" \
        'BEGIN { print (a > 0 && a < 1.2e-5 && a < b) }')" = 1 ]
verdict $? "reluize --within 1e-5: more ReLUs, and the file that was written is as near on the test samples" \
    "$(count $out/within1e-5.json) ReLUs, $(field within divergence $out/within1e-5.json) nats"
[ "$(count $out/within1e-9.json)" = 12 ] && grep -q '"holds": false' $out/within1e-9.json && grep -q '^Even 6 ReLUs a gate' $out/within1e-9.txt
verdict $? "reluize --within 1e-9: the most, and a line that it is not enough" "$(count $out/within1e-9.json) ReLUs"
{ printf '\357\273\277'; cat $out/table.csv; } > $out/marked.csv
$r $model --data $out/table.csv -o $out/plain.onnx --epochs 1 --report $out/plain.txt > $out/stdout 2> $out/stderr &&
    $r $model --data $out/marked.csv -o $out/marked.onnx --epochs 1 --report $out/marked.txt > $out/stdout 2>> $out/stderr &&
    cmp $out/plain.onnx $out/marked.onnx > /dev/null
verdict $? "reluize: a table with a byte order mark and no heading keeps its first row" "$(tail -n 1 $out/stderr)"
# a target, y = x0 + 2 x1 - x2 / 2, that a network with one output learns
awk 'BEGIN { srand(3)
    for (i = 0; i < 500; i++) { for (k = 0; k < 6; k++) { x[k] = rand(); printf "%.5f,", x[k] } print x[0] + 2 * x[1] - x[2] / 2 } }' > $out/targets.csv
$r $out/nets/number.onnx --data $out/targets.csv -o $out/number.onnx --epochs 60 --rate 0.03 --batch 16 --report $out/number.json > $out/stdout 2> $out/stderr &&
    grep -q '"metric": "r2"' $out/number.json && grep -q Relu $out/number.onnx &&
    awk '/"tuned"/ { split($3, a, ","); good = a[1] + 0 > 98 } END { exit !good }' $out/number.json
verdict $? "reluize: a network with one output learns targets, scored by R2" "$(tail -n 1 $out/stderr) $(grep tuned $out/number.json)"
if [ -n "$onnx" ] && $onnx -c "import numpy as n, sys
r = n.random.default_rng(5); ids = r.integers(0, 12, (400, 5)); answer = n.argmax([(ids % 3 == k).sum(1) for k in range(3)], 0)
n.save('$out/ids.npy', ids); n.save('$out/ids_fortran.npy', n.asfortranarray(ids.astype('int32'))); n.save('$out/answer.npy', answer)
n.save('$out/high.npy', ids + 1); n.save('$out/few.npy', answer[:7])"; then
    said=$(outcome $r $out/nets/text.onnx --data $out/ids.npy --labels $out/answer.npy -o $out/text.onnx --epochs 60 --rate 0.02 --report $out/text.json)
    [ "$said" = "0 0" ] && grep -q Relu $out/text.onnx && awk '/"tuned"/ { split($3, a, ","); good = a[1] + 0 > 95 } END { exit !good }' $out/text.json
    verdict $? "reluize: token ids from an array" "status and lines $said: $(tail -n 1 $out/stderr) $(grep tuned $out/text.json)"
    $r $out/nets/text.onnx --data $out/ids_fortran.npy --labels $out/answer.npy -o $out/text_2.onnx --epochs 60 --rate 0.02 > $out/stdout 2> $out/stderr &&
        cmp $out/text.onnx $out/text_2.onnx > $out/stdout
    verdict $? "reluize: the same ids in another order and type give the same file" "$(tail -n 1 $out/stderr)"
    for case in "high.npy answer.npy expected token ids from 0 to 11, found 12" "ids.npy few.npy expected 400 labels, one for each sample"; do
        words=${case#* }
        said=$(outcome $r $out/nets/text.onnx --data $out/${case%% *} --labels $out/${words%% *} -o $out/no.onnx)
        [ "$said" = "1 1" ] && grep -q "${words#* }" $out/stderr
        verdict $? "reluize refuses ${case%% *} with ${words%% *}" "status and lines $said: $(head -n 1 $out/stderr)"
    done
else echo "skip reluize: arrays: $no_onnx"; fi
refused() {
    name=$1 status=$2 text=$3
    shift 3
    said=$(outcome $r "$@")
    [ "$said" = "$status 1" ] && grep -q "$text" $out/stderr
    verdict $? "reluize: $name" "status and lines $said: $(head -n 1 $out/stderr)"
}
# labels that are the network's own predictions, the same in another order, and few samples
if [ -n "$onnx" ] && $onnx -c "import numpy as n, math
from onnx import helper as h, numpy_helper as nh, save
r = n.random.default_rng(7); x = r.normal(size=(400, 6)).astype('f'); w = r.normal(size=(6, 9)).astype('f'); v = r.normal(size=(9, 3)).astype('f')
u = x @ w; answer = n.argmax(u * (1 + n.vectorize(math.erf)(u / 2 ** 0.5)) / 2 @ v, 1)
nodes = [h.make_node('MatMul', ['x', 'w'], ['u']), h.make_node('Gelu', ['u'], ['g']), h.make_node('MatMul', ['g', 'v'], ['y'])]
made = h.make_graph(nodes, 'g', [h.make_tensor_value_info('x', 1, ['n', 6])], [h.make_tensor_value_info('y', 1, ['n', 3])],
    [nh.from_array(w, 'w'), nh.from_array(v, 'v')])
save(h.make_model(made, opset_imports=[h.make_opsetid('', 20)], ir_version=8), '$out/own.onnx')
n.save('$out/own.npy', x); n.save('$out/own_answer.npy', answer); n.save('$out/own_other.npy', r.permutation(answer))

gated = u * (1 + n.vectorize(math.erf)(u / 2 ** 0.5)) / 2
made.node[2].input[1] = 'one'; made.initializer.append(nh.from_array(v[:, :1], 'one')); made.output[0].type.tensor_type.shape.dim[1].dim_value = 1
save(h.make_model(made, opset_imports=[h.make_opsetid('', 20)], ir_version=8), '$out/own_one.onnx')
broken = v.copy(); broken[4, 2] = n.nan; made.initializer.append(nh.from_array(broken, 'broken')); made.node[2].input[1] = 'broken'
made.output[0].type.tensor_type.shape.dim[1].dim_value = 3; save(h.make_model(made, opset_imports=[h.make_opsetid('', 20)], ir_version=8), '$out/own_nan.onnx')
n.save('$out/own_targets.npy', gated @ v); t = (gated @ v).astype('f'); y = t[4::5].copy(); t[:, 2] = -0.81; n.save('$out/own_flat.npy', t)
t = t[4::5]; print('%.1f' % (100 - 100 * ((y - t) ** 2).sum() / ((t - t.mean(0)) ** 2).sum()), file=open('$out/own_flat.txt', 'w'))
n.save('$out/own_sign.npy', (gated @ v[:, 0] > 0).astype('i8'))
n.save('$out/own_bytes.npy', (x * 9 + 128).astype('u1')); n.savez('$out/own.npz', x=x); x[23, 1] = n.nan; n.save('$out/own_nan.npy', x)
open('$out/own_quoted.csv', 'w').write('a,b,c,d,e,f\n' + '\"1.5\",2,3,4,5,6\n' * 9); x[23, 1] = 0
n.save('$out/own_pixels.npy', (x * 30 + 128).clip(0, 255)); high = answer.copy(); high[23] = 3; n.save('$out/own_high.npy', high)
n.save('$out/own_few.npy', x[:90]); n.save('$out/own_few_answer.npy', answer[:90])"; then
    notes() { $r $out/own.onnx --data $out/$1.npy --labels $out/$2.npy -o $out/own_relu.onnx 2>&1 | grep -c -e 'by chance it would score' -e 'its figures are rough'; }
    said="$(notes own own_answer) $(notes own own_other) $(notes own_few own_few_answer)"
    [ "$said" = "0 1 1" ]
    verdict $? "reluize: labels that fit no better than chance, and few samples, are noted" "$said notes, expected 0 1 1"
    said="$(for raw in own own_pixels 'own_pixels --raw'; do
        $r $out/own.onnx --data $out/${raw% --raw}.npy $(echo $raw | grep -o -e --raw) -o $out/own_relu.onnx 2>&1 | grep -c 'npy: floats from 0 to 255'; done | tr '\n' ' ')"
    [ "$said" = "0 1 0 " ]
    verdict $? "reluize: floats from 0 to 255 are noted, unless --raw says that they are meant" "$said notes, expected 0 1 0"
    $r $out/own.onnx --data $out/own.npy --labels $out/own_targets.npy -o $out/own_relu.onnx --report $out/own.json > $out/stdout 2> $out/stderr &&
        grep -q '"metric": "r2"' $out/own.json && grep -q '"before": {.*"score": \(100\|99.99\)' $out/own.json
    verdict $? "reluize: several targets are scored by R2" "$(grep before $out/own.json) $(tail -n 1 $out/stderr)"
    ! grep -q ' $' $out/stdout && grep -q 'held-out training samples, .*: cold swap [0-9.e-]*; refitted [0-9.e-]*[;.]' $out/stdout
    verdict $? "reluize: no line ends with blanks, and the ways on held-out samples have the names of the table" "$(grep -n -e ' $' -e held-out $out/stdout | head -n 1)"
    $r $out/own.onnx --data $out/own.npy --labels $out/own_flat.npy -o $out/own_relu.onnx --report $out/own.json > $out/stdout 2> $out/stderr
    said=$(sed -n 's/.*"before": {.*"score": \([-0-9.e+]*\).*/\1/p' $out/own.json)
    [ "$(LC_ALL=C printf %.1f "$said")" = "$(cat $out/own_flat.txt)" ]
    verdict $? "reluize: a target that never varies has no weight of its own in R2" "$said, expected $(cat $out/own_flat.txt)"
    $r $out/own_one.onnx --data $out/own.npy --labels $out/own_sign.npy -o $out/own_relu.onnx --report $out/own.json > $out/stdout 2> $out/stderr &&
        grep -q '"metric": "accuracy"' $out/own.json && grep -q '"before": {.*"score": 100' $out/own.json
    verdict $? "reluize: one logit of two classes is scored by its sign" "$(grep before $out/own.json) $(tail -n 1 $out/stderr)"
    $r $out/own_nan.onnx --data $out/own.npy -o $out/own_relu.onnx > $out/stdout 2> $out/stderr &&
        grep -q '^Of the original.s outputs .* 80 of 240 are infinite or no numbers.* Element 14 of its constant .broken. is NaN.$' $out/stdout
    verdict $? "reluize: outputs that are no numbers are counted, and the constant that has one is named" "$(tail -n 1 $out/stdout $out/stderr)"
    wrong() { refused "$1" 1 "$2" $out/own.onnx --data $out/$3 -o $out/no.onnx; }
    wrong "bytes where floats are expected" "own_bytes.npy: bytes, but input 'x' takes floats" own_bytes.npy
    refused "a label that is no class" 1 'own_high.npy: sample 23: its label is 3, but the network has 3 classes, from 0 to 2' \
        $out/own.onnx --data $out/own.npy --labels $out/own_high.npy -o $out/no.onnx
    wrong "an archive of arrays" 'own.npz: a .npz archive' own.npz
    wrong "NaN among the inputs" 'own_nan.npy: element 139 is NaN' own_nan.npy
    wrong "a table with quotes" 'own_quoted.csv: line 2: a field in quotes' own_quoted.csv
    wrong "a folder that is missing" 'no such file or folder' nowhere/deeper
else echo "skip reluize: labels that fit no better than chance: $no_onnx"; fi
head -c 700 $model > $out/cut.onnx
printf '1,2,0\n3,4,1\n5,6,1\n7,8,0\n9,x,1\n' > $out/odd.csv
refused "no model" 2 'the model is missing' --data x
refused "an unknown option" 2 'no such option' $model --data $out/table.csv -o $out/no.onnx --what
refused "two data for one input" 2 'there is --data .* already; of several inputs, name each' $model --data $out/table.csv --data $out/five.csv -o $out/no.onnx
refused "two data for one name" 2 'there is --data x=.* already' $model --data x=$out/table.csv --data x=$out/five.csv -o $out/no.onnx
refused "an option with '='" 2 'two arguments, without' $model --data=$out/table.csv -o $out/no.onnx
refused "a rate that is no number" 2 'expected a number' $model --data $out/table.csv -o $out/no.onnx --rate fast
refused "two files of one name" 2 'two options name this file' $model --data $out/table.csv -o $out/no.onnx --int8 $out/no.onnx
refused "a model cut off" 1 'cut.onnx: byte [0-9]*: this is not an ONNX file, or it is damaged' \
    $out/cut.onnx --data $out/table.csv -o $out/no.onnx
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 97958\n' 7 > $out/pointer.onnx
refused "a file that Git LFS has not fetched" 1 'pointer.onnx: this is a Git LFS pointer, not the model: git lfs pull' \
    $out/pointer.onnx --data $out/table.csv -o $out/no.onnx
printf 'PK\003\004 the first bytes of every zip archive' > $out/model.pt
refused "a file of torch.save" 1 'model.pt: this is a zip archive, as torch.save writes it' $out/model.pt --data $out/table.csv -o $out/no.onnx
printf '\034\0\0\0TFL3 the first bytes of a TensorFlow Lite model' > $out/model.tflite
refused "a file of TensorFlow Lite" 1 'model.tflite: this is a TensorFlow Lite model and no ONNX file' $out/model.tflite --data $out/table.csv -o $out/no.onnx
printf '\n\n  <!DOCTYPE html>\n<html>the page that shows the file</html>\n' > $out/page.onnx
refused "a web page that was saved in place of the file" 1 'page.onnx: this is a web page and no ONNX file' $out/page.onnx --data $out/table.csv -o $out/no.onnx
refused "no such model" 1 'No such file' $out/none.onnx --data $out/table.csv -o $out/no.onnx
refused "a table with a word in it" 1 "odd.csv: line 5: expected a number, found" $model --data $out/odd.csv -o $out/no.onnx
refused "data of another shape" 1 'takes 20 values a sample' $model --data ../examples/pictures -o $out/no.onnx
refused "a text of other characters than the network's" 1 'different characters, but the network' $out/nets/gpt_tanh.onnx --data $out/table.csv -o $out/no.onnx
[ "$(outcome $r $out/nets/mlp_relu.onnx --data $out/table.csv -o $out/same.onnx)" = "0 0" ] && cmp $out/nets/mlp_relu.onnx $out/same.onnx
verdict $? "a network without a smooth gate is written as it is"
refused "an output that is not there" 1 "there is no output and no computed value 'other'" $model --data $out/table.csv -o $out/no.onnx --output other
refused "nowhere to write" 1 'No such file' $model --data $out/table.csv -o $out/none/no.onnx
cut -d , -f 1-20 $out/table.csv > $out/inputs.csv
refused "fine-tuning without labels" 1 'requires labels' $model --data $out/inputs.csv -o $out/no.onnx --epochs 1
head -n 5 $out/table.csv > $out/five.csv
refused "a refit from too few inputs" 1 'expected at least 8' $model --data $out/five.csv -o $out/no.onnx
rm -f $out/inputs.onnx
[ "$(outcome $r $model --data $out/inputs.csv -o $out/inputs.onnx --report $out/inputs.json)" = "0 0" ] &&
    grep -q '"metric": "none"' $out/inputs.json && grep -q '"refitted": {"flips": ' $out/inputs.json && [ -s $out/inputs.onnx ] &&
    ! grep -q '^before' $out/stdout
verdict $? "reluize: a table without labels" "$(tail -n 1 $out/stderr)"
# a text of as many different characters as the network has tokens
words=50
awk -v n=$words 'BEGIN { srand(3); for (i = 0; i < 20000; i++) printf "%c", 48 + int(rand() * n) }' > $out/text.txt
[ "$(outcome $r $out/nets/gpt_tanh.onnx --data $out/text.txt -o $out/text.onnx --report $out/text.json)" = "0 0" ] &&
    ! grep -q Tanh $out/text.onnx && grep -q '"refitted": {"score": ' $out/text.json
verdict $? "reluize: a text, for a network of characters" "$(tail -n 1 $out/stderr)"
# words of a vocabulary file: the same samples as an array of ids
if [ -n "$onnx" ] && $onnx -c "import numpy as n
r = n.random.default_rng(6); ids = r.integers(2, 12, (400, 5)); ids[::7, 3:] = 0; ids[::5, 1] = 1
answer = n.argmax([(ids % 3 == k).sum(1) for k in range(3)], 0)
n.save('$out/word_ids.npy', ids); n.save('$out/word_answer.npy', answer)
names = ['[PAD]', '[UNK]'] + ['word%d' % i for i in range(2, 12)]
open('$out/words.txt', 'w').write('\n'.join(names) + '\n')
text = lambda row: ' '.join('other' if i == 1 else 'Word%d' % i for i in row if i)
open('$out/lines.tsv', 'w').write(''.join('%d\t%s\n' % (a, text(row)) for a, row in zip(answer, ids)))
pieces = '[PAD] [UNK] [CLS] [SEP] un ##aff ##able , ! the cat ##s'.split()
open('$out/pieces.txt', 'w').write('\r\n'.join(pieces))
n.save('$out/piece_ids.npy', n.array([[2, 4, 5, 6, 3], [2, 9, 1, 3, 0], [2, 10, 11, 8, 3], [2, 3, 0, 0, 0], [2, 1, 7, 1, 3]] * 16))
open('$out/pieces.tsv', 'w').write('Unaffable, the cats!\nThe dog\n cats!\n \nunthe,AFFABLE\n' * 16)"; then
    $r $out/nets/text.onnx --data $out/word_ids.npy --labels $out/word_answer.npy -o $out/word_1.onnx --epochs 20 --rate 0.02 \
        --report $out/word_1.json > $out/stdout 2> $out/stderr &&
        $r $out/nets/text.onnx --data $out/lines.tsv --vocabulary $out/words.txt -o $out/word_2.onnx --epochs 20 --rate 0.02 \
            --report $out/word_2.json > $out/stdout 2>> $out/stderr &&
        cmp $out/word_1.onnx $out/word_2.onnx > $out/stdout && grep -q '"metric": "accuracy"' $out/word_2.json
    verdict $? "reluize: lines of words with classes, by a vocabulary" "$(tail -n 1 $out/stderr)"
    $r $out/nets/text.onnx --data $out/piece_ids.npy -o $out/word_1.onnx > $out/stdout 2> $out/stderr &&
        $r $out/nets/text.onnx --data $out/pieces.tsv --vocabulary $out/pieces.txt -o $out/word_2.onnx > $out/stdout 2>> $out/stderr &&
        cmp $out/word_1.onnx $out/word_2.onnx > $out/stdout
    verdict $? "reluize: words divided into pieces, between [CLS] and [SEP], cut and padded" "$(tail -n 1 $out/stderr)"
else echo "skip reluize: words of a vocabulary: $no_onnx"; fi
awk -v n=$words 'BEGIN { for (i = 0; i < n; i++) printf "%c\n", 48 + i }' > $out/letters.txt
sed 's/./& /g' $out/text.txt > $out/spaced.txt
$r $out/nets/gpt_tanh.onnx --data $out/spaced.txt --vocabulary $out/letters.txt -o $out/text_2.onnx > $out/stdout 2> $out/stderr &&
    cmp $out/text.onnx $out/text_2.onnx > $out/stdout
verdict $? "reluize: a text as words, for a network of next tokens" "$(tail -n 1 $out/stderr)"
# the time that it takes is proportional to the length of a word, even of 400,000 letters
printf 'a\n##a\n' > $out/two_pieces.txt
awk 'BEGIN { for (i = 0; i < 8000; i++) printf "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" }' > $out/long_word.txt
(ulimit -t 30; $r $out/nets/gpt_tanh.onnx --data $out/long_word.txt --vocabulary $out/two_pieces.txt --samples 100 -o $out/text_3.onnx) > $out/stdout 2> $out/stderr
verdict $? "reluize: a word of 400,000 letters is divided into pieces in seconds" "$(tail -n 1 $out/stderr)"
printf 'a\nb\n' > $out/few_words.txt
printf '0\ta b a b a\n1\ta c a b a\n0\ta a a a a\n1\tb b b b b\n0\tb a b a b\n' > $out/few_lines.tsv
refused "a word that the vocabulary lacks" 1 "neither 'c' nor a token for unknown words" $out/nets/text.onnx --data $out/few_lines.tsv \
    --vocabulary $out/few_words.txt -o $out/no.onnx
printf 'a b\na\na\na\na\n' > $out/short_lines.txt
refused "a short line without padding" 1 'line 1 has 2 tokens, the network takes 5, and the vocabulary has no' $out/nets/text.onnx \
    --data $out/short_lines.txt --vocabulary $out/few_words.txt -o $out/no.onnx
printf '0\ta b a b a\nx\ta\n1\ta\n1\tb\n0\tb\n' > $out/odd_lines.tsv
refused "a line without its class" 1 'line 2: expected a class 0, 1, 2, ..., a tab and a text' $out/nets/text.onnx \
    --data $out/odd_lines.tsv --vocabulary $out/few_words.txt -o $out/no.onnx
refused "a vocabulary larger than the network's" 1 '50 tokens, but the network' $out/nets/text.onnx --data $out/few_lines.tsv \
    --vocabulary $out/letters.txt -o $out/no.onnx
refused "a mean for a table" 1 'mean and --std are for images' $model --data $out/table.csv --mean 0.5 -o $out/no.onnx
{ printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (12, 20), }"; head -c 960 /dev/zero; } > $out/floats.npy
refused "a mean for an array of floats" 1 'floats.npy: not bytes, so its values are used as they are' $model --data $out/floats.npy \
    --mean 0.5 -o $out/no.onnx
refused "a standard for an array" 1 'standard is for images and tables' $model --data $out/floats.npy --standard -o $out/no.onnx
refused "a mean and --standard" 2 'takes the place' $model --data $out/table.csv --std 0.5 --standard -o $out/no.onnx
refused "a vocabulary without tokens" 1 'vocabulary is for a network that reads tokens' $model --data $out/table.csv \
    --vocabulary $out/letters.txt -o $out/no.onnx
# C files and their headers: a program of them has the scores of the report
rm -f $out/net.h $out/net8.h
$r $model --data $out/table.csv -o $out/c.onnx --c $out/net.c --c8 $out/net8.c --h --epochs 8 --rate 0.01 --report $out/c.json > $out/stdout 2> $out/stderr
verdict $? "reluize: C files" "$(tail -n 1 $out/stderr)"
grep '"refitted": {' $out/c.json | grep -q '"held"'
verdict $? "reluize: the report has held-out values of the ways that were measured there" "$(grep 'held' $out/stdout $out/c.json | head -n 1)"
cat > $out/score.c <<'C'
#include "net.h"
#include "net8.h"
#include <math.h>
#include <stdio.h>
int main(void)
{
    static float x[net_inputs], y[net_outputs];
    static uint8_t x8[net8_inputs];
    static int32_t y8[net8_outputs];
    int row, k, right = 0, right8 = 0, rows = 0;
    for (row = 0;; row++) {
        int label, best = 0, best8 = 0;
        for (k = 0; k < net_inputs; k++) {
            if (scanf("%f,", x + k) != 1) {
                printf("%g %g\n", 100.0 * right / rows, 100.0 * right8 / rows);
                return 0;
            }
        }
        if (scanf("%d", &label) != 1)
            return 1;
        if (row % 5 != 4)
            continue;
        for (k = 0; k < net8_inputs; k++) {
            const float q = rintf(x[k] / net8_X_SCALE) + net8_X_ZERO;
            x8[k] = (uint8_t)(q < 0 ? 0 : q > 255 ? 255 : q);
        }
        net(y, x);
        net8(y8, x8);
        for (k = 0; k < net_outputs; k++) {
            best = y[k] > y[best] ? k : best;
            best8 = y8[k] > y8[best8] ? k : best8;
        }
        right += best == label;
        right8 += best8 == label;
        rows++;
    }
}
C
json() { sed -n "s/.*\"$1\": {\"score\": \([0-9.]*\).*/\1/p" $2; }
said=$($CC -std=c99 -O1 -Wall -Wextra -Werror $out/score.c $out/net.c $out/net8.c -lm -o $out/score 2>&1 && $out/score < $out/table.csv)
written=$(sed -n 's/.*"written": "\([a-z]*\)".*/\1/p' $out/c.json)
[ "${said% *}" = "$(json $written $out/c.json)" ] && [ "${said% *}" != 0 ] && [ "${said#* }" -ge 95 ]
verdict $? "reluize: a program of the C files and headers has the score of the report, and in 8 bits at least 95" "$said"
refused "--h without a C file" 2 'neither --c nor --c8' $model --data $out/table.csv -o $out/no.onnx --h
refused "--h with another ending" 2 'expected NAME.c, where NAME is a C identifier' $model --data $out/table.csv -o $out/no.onnx --c $out/no.txt --h
refused "a reserved word as the name of a C file" 2 'int.c: expected NAME.c.*no reserved word' $model --data $out/table.csv -o $out/no.onnx --c $out/int.c
refused "a function of the C library as the name of a C file" 2 'log.c: expected NAME.c.*no name of the C library' $model \
    --data $out/table.csv -o $out/no.onnx --c8 $out/log.c --h
# of so few samples a refit is refused: it has not begun
awk 'BEGIN { for (i = 0; i < 84; i++) printf "%c", 48 + i % 50 }' > $out/short.txt
refused "a refit from a short text" 1 'expected at least 8' $out/nets/gpt_tanh.onnx --data $out/short.txt -o $out/no.onnx
refused "layers that C files do not have, before a refit" 1 'C file: ' $out/nets/gpt_tanh.onnx --data $out/short.txt -o $out/no.onnx --c $out/no.c
# twenty pictures of 30 x 20, black but for a bright band, in two folders: of another size than the network's, in grey
for c in 0 1; do
    mkdir -p $out/bands/class$c
    for i in 0 1 2 3 4 5 6 7 8 9; do
        for band in 0 1; do
            if [ $band = $c ]; then level="\\3$((i % 8))0"; else level='\0'; fi
            head -c 300 /dev/zero | tr '\0' "$level"
        done > $out/band
        (printf 'P5 30 20 255\n'; cat $out/band) > $out/bands/class$c/$i.pgm
    done
done
[ "$(outcome $r $out/nets/lenet.onnx --data $out/bands -o $out/bands.onnx --epochs 20 --rate 0.003 --batch 8 \
    --report $out/bands.json)" = "0 0" ] && grep -q '"tuned": {"score": 100,' $out/bands.json
verdict $? "reluize: a folder of pictures, resized to what the network takes" "$(tail -n 1 $out/stderr)"
# other images made of the images train to other weights
tune="$out/nets/lenet.onnx --data $out/bands --epochs 4 --rate 0.003 --batch 8"
$r $tune -o $out/as_they_are.onnx > $out/stdout 2> $out/stderr && $r $tune -o $out/moved.onnx --augment > $out/stdout 2> $out/stderr &&
    ! cmp $out/as_they_are.onnx $out/moved.onnx > /dev/null && grep -q 'images mirrored, scaled and moved' $out/stdout
verdict $? "reluize: --epochs with other images" "$(tail -n 1 $out/stderr)"
refused "--augment without training" 2 'are for --minutes, --steps and --epochs' $out/nets/lenet.onnx --data $out/bands -o $out/no.onnx --augment
refused "--augment of a table" 1 'one input, of images' $model --data $out/table.csv -o $out/no.onnx --epochs 1 --augment
refused "--rival without epochs" 2 'requires --epochs' $model --data $out/table.csv -o $out/no.onnx --rival
mkdir -p $out/loose
for i in 0 1 2 3 4 5 6 7 8 9; do
    cp $out/bands/class0/$i.pgm $out/loose/a$i.pgm
    cp $out/bands/class1/$i.pgm $out/loose/b$i.pgm
done
[ "$(outcome $r $out/nets/lenet.onnx --data $out/loose -o $out/loose.onnx --report $out/loose.json)" = "0 0" ] &&
    grep -q '"metric": "none", "test_samples": 4' $out/loose.json && [ -s $out/loose.onnx ]
verdict $? "reluize: a folder of pictures without classes" "$(tail -n 1 $out/stderr)"
# two batches as CIFAR-10's: forty pictures of 32 x 32 in three colours, of which the class is the bright one
mkdir -p $out/cifar
for batch in data_batch_1 test_batch; do
    for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do
        printf "\\00$((i % 2))"
        for colour in 0 1 2; do
            if [ $colour = $((i % 2)) ]; then level="\\3$((i % 8))0"; else level='\0'; fi
            head -c 1024 /dev/zero | tr '\0' "$level"
        done
    done > $out/cifar/$batch.bin
done
[ "$(outcome $r $out/nets/lenet_colour.onnx --data $out/cifar -o $out/cifar.onnx --epochs 20 --rate 0.003 --batch 10 \
    --report $out/cifar.json)" = "0 0" ] && grep -q '"tuned": {"score": 100,' $out/cifar.json
verdict $? "reluize: batches of CIFAR" "$(tail -n 1 $out/stderr)"
if [ -n "$onnx" ] && mkdir -p $out/forms && $onnx tools/onnx_forms.py $out/forms; then
    if [ -n "$runtime" ]; then
        node tools/onnx_run.js $out/forms/list $out/forms write && $out/onnx_evaluate $out/forms/list $out/forms 1e-5 > $out/log
        verdict $? "forms up to opset 25 are evaluated, the outputs those of ONNX Runtime" "$(cat $out/log)"
    else echo "skip forms up to opset 25: $no_runtime"; fi
else echo "skip forms up to opset 25: $no_onnx"; fi
[ ! -e $out/no.onnx ] && [ ! -e $out/no.c ]
verdict $? "reluize: what fails writes nothing"
# the disk is full when the report, the last file of several, is written
if [ -c /dev/full ]; then
    kept="whole.onnx whole.int8 whole.c whole8.c whole.h whole8.h"
    for f in $kept; do echo old > $out/$f; done
    said=$(outcome $r $model --data $out/table.csv -o $out/whole.onnx --int8 $out/whole.int8 --c $out/whole.c --c8 $out/whole8.c --h --report /dev/full)
    [ "$said" = "1 1" ] && grep -q "No space left" $out/stderr && [ "$(cd $out && cat $kept | grep -c '^old$')" = 6 ] && [ "$(ls $out | grep -c '^whole')" = 6 ]
    verdict $? "reluize: a full disk at the last file leaves all of them as they were" "status and lines $said: $(cd $out && ls -l $kept)"
else echo "skip reluize: a full disk at the last file: no /dev/full"; fi
echo old > $out/old.onnx
$out/reluize $model --data $out/table.csv -o $out/old.onnx --epochs 1000000 2> $out/stderr &
job=$!
wait_until grep -q 'fine-tuned: ' $out/stderr
kill -TERM $job
wait $job
[ $? = 130 ] && [ "$(cat $out/old.onnx)" = old ] && [ "$(ls $out | grep 'old.onnx' | tr '\n' ' ')" = "old.onnx old.onnx.distil " ]
verdict $? "reluize: interrupted, it ends with 130 and leaves the old file, and the state to continue from"
rm -f $out/old.onnx.distil
mkfifo $out/fifo.$$ || exit 1
cat $out/fifo.$$ > $out/through &
$r $model --data $out/table.csv -o $out/fifo.$$ > $out/stdout 2> $out/stderr
status=$?
wait
[ $status = 0 ] && [ -p $out/fifo.$$ ] && grep -q Relu $out/through
verdict $? "reluize: writes plainly what is no file"
rm -f $out/fifo.$$

if [ -n "$torch" ]; then
    mkdir -p $out/gates
    if $torch tools/onnx_gates.py $out/gates > $out/gates.list 2> $out/gates.log; then
        $out/onnx_evaluate $out/gates.list $out/gates 1e-5 || bad=1
        for n in silu elu; do
            $r $out/gates/mlp_$n.onnx --data $out/table.csv -o $out/$n.onnx --epochs 20 --rate 0.01 --report $out/$n.json \
                > $out/stdout 2> $out/stderr && grep -q '"tuned": {"score": 100' $out/$n.json
            verdict $? "reluize: $n, fine-tuned as ReLU" "$(tail -n 1 $out/stderr)"
        done
    else echo "FAIL reluize: gates of PyTorch: $(tail -n 1 $out/gates.log)"; bad=1; fi
    mkdir -p $out/trip $out/trip_relu
    if $torch tools/onnx_train.py $out/trip > $out/trip.list 2> $out/trip.log; then
        $out/onnx_evaluate $out/trip.list $out/trip 1e-4 || bad=1
        for n in $(cut -f1 $out/trip.list); do
            $r $out/trip/$n.onnx --data $out/trip/data --mean 0.3 --std 0.35 -o $out/trip_relu/$n.onnx --report $out/$n.json \
                > $out/$n.txt 2> $out/stderr
            verdict $? "reluize: $n of PyTorch" "$(tail -n 1 $out/stderr)"
            sed 's/^/# /' $out/$n.txt
            before=$(sed -n 's/.*"before": {"score": \([0-9.]*\).*/\1/p' $out/$n.json)
            theirs=$(grep "^$n	" $out/trip.list | cut -f5)
            [ "$(awk -v a=$before -v b=$theirs 'BEGIN { print a - b < 0.06 && b - a < 0.06 }')" = 1 ]
            verdict $? "reluize: $n scores as in PyTorch" "$before"
            cold=$(sed -n 's/.*"cold": {.*"mean_dlogit": \([0-9.e-]*\).*/\1/p' $out/$n.json)
            mean=$(sed -n 's/.*"refitted": {.*"mean_dlogit": \([0-9.e-]*\).*/\1/p' $out/$n.json)
            [ "$(awk -v a=$mean -v b=$cold 'BEGIN { print (a > 0 && 2 * a <= b) }')" = 1 ]
            verdict $? "reluize: the refit of $n changes logits by less than half of what the cold swap does" "$mean and $cold"
            ! grep -q 'Erf\|Tanh\|Sigmoid' $out/trip_relu/$n.onnx && cp $out/trip/$n.in $out/trip_relu
            verdict $? "reluize: $n is a ReLU network"
        done
        if [ -n "$runtime" ]; then
            node tools/onnx_run.js $out/trip.list $out/trip_relu write &&
                $out/onnx_evaluate $out/trip.list $out/trip_relu 1e-5 > $out/log
            verdict $? "reluize: ONNX Runtime's logits of the files written are ours to 1e-5 of the largest" "$(cat $out/log)"
        else echo "skip reluize: ONNX Runtime's logits of the files written: $no_runtime"; fi
    else echo "FAIL reluize: networks of PyTorch: $(tail -n 1 $out/trip.log)"; bad=1; fi
else echo "skip reluize: networks of PyTorch: $no_torch"; fi
exit $bad
