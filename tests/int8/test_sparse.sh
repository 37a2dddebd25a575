# SPDX-License-Identifier: MIT-0
# test_sparse.sh: the table of what zeros are worth to a language model (tools/sparse_run.sh), made for tiny networks and a text of the
# repository: a training that is stopped continues with the same bits; the rows are there, with losses and zeros that belong together;
# what is measured is what the file means; and a distillation by tokens brings the cold swap nearer.
out=build/sparse
. tools/job.sh
text=../lgelu.h
# a tenth of the header, of which a network of one layer learns what follows what
head -c 60000 $text > $out/text
run() { WINDOWS=60 ROUNDS=1 DISTIL=20 RATE=0.001 sh tools/sparse_run.sh $1 $out/text 400 $out/$1 1 32; }
for net in gpt llama; do
    run $net > $out/$net.md 2> $out/$net.err
    verdict $? "$net: one command makes the table" "$(tail -n 1 $out/$net.err)"
    # the first table: name, loss, rise, verdict, flips, zeros
    cell() { awk -F ' *[|] *' -v row="$1" -v column=$2 '$2 == row { print $column; exit }' $out/$net.md | sed 's/ (.*//'; }
    rows=$(for row in 'the original' 'cold swap' 'cold swap, distilled' 'closed form' distilled 'the original, smallest values 0: equal zeros' \
        'the original, smallest values 0: equal nats'; do cell "$row" 3; done | grep -c '^[0-9]')
    verdict $([ "$rows" = 7 ]; echo $?) "$net: a loss in each of seven rows" "$rows"
    echo "$(cell 'the original' 7) $(cell 'cold swap' 7) $(cell distilled 7) $(cell 'the original, smallest values 0: equal zeros' 7)" |
        awk '{ exit !(NF == 4 && $1 < 1 && $2 > 20 && $3 > 20 && $4 - $3 < 3 && $3 - $4 < 3) }'
    verdict $? "$net: zeros with ReLU, none with the smooth gate, and as many in the control that equals them" "$(grep zeros $out/$net.md | head -n 3)"
    echo "$(cell distilled 3) $(cell 'the original, smallest values 0: equal nats' 3)" | awk '{ exit !(NF == 2 && $1 - $2 < 0.02 && $2 - $1 < 0.02) }'
    verdict $? "$net: the control of equal loss has that loss" "$(cell distilled 3), $(cell 'the original, smallest values 0: equal nats' 3)"
    echo "$(cell 'cold swap' 4) $(cell 'cold swap, distilled' 4) $(cell 'closed form' 4)" | awk '{ exit !(NF == 3 && $2 < $1 && $3 < $1) }'
    verdict $? "$net: distilled and converted networks are nearer to the original than the cold swap" \
        "$(cell 'cold swap' 4), $(cell 'cold swap, distilled' 4), $(cell 'closed form' 4)"
done

# a training that is stopped

mkdir $out/part
(build/sparse_train gpt $out/text 400 $out/part 1 32 & sleep 0.3; kill -INT $!; wait $!) > $out/log 2>&1
[ -e $out/part/gpt.onnx ] && echo "skip a training that is stopped: it had ended before"
build/sparse_train gpt $out/text 400 $out/part 1 32 > $out/log 2>&1 && cmp $out/gpt/gpt.onnx $out/part/gpt.onnx >> $out/log 2>&1
verdict $? "a training that was stopped ends with the same bytes" "$(tail -n 1 $out/log)"

# the control: weights that are not those of the file are noticed
code=1 refused 'expected a MatMul\|other logits\|a constant of' build/sparse_table llama $out/text 60 1 $out/gpt/gpt.onnx x=$out/gpt/gpt.closed.onnx
exit $bad
