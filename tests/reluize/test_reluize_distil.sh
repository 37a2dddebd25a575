# SPDX-License-Identifier: MIT-0
# test_reluize_distil.sh: reluize --steps on the sample network and images of the repository: what is written is nearer to the
# original on held-out images than the conversion alone, a run that is interrupted continues with the same bits, and so does one with less
# memory; labels alone, and beside the original. The precision of boxes by tools/detector_boxes.py is that of a case counted by hand.
out=build/reluize_distil
. tools/job.sh
library="$IMPLEMENTATION -lm"
$CC $RELUIZE $library -o $out/reluize || exit 1
run="$out/reluize ../examples/sample/cnn_silu.onnx --data ../examples/pictures --samples 48 --steps 8"

OMP_NUM_THREADS=1 $run -o $out/whole.onnx > $out/whole.txt 2> $out/whole.err
verdict $? "reluize --steps" "$(tail -n 1 $out/whole.err)"
loss=$(sed -n 's/.*loss on held-out samples \([^ ]*\) before, \([^ ]*\) at best.*/\1 \2/p' $out/whole.txt)
echo "$loss" | awk '{ exit !($2 > 0 && $2 < $1) }'
verdict $? "the loss on held-out images falls" "from and to: $loss"
[ -s $out/whole.onnx.svg ] && [ ! -e $out/whole.onnx.distil ]
verdict $? "a figure of the run is there, and its state is gone"

# In half of the memory values are computed again, with the same bytes; too little is refused, with how much is enough.
OMP_NUM_THREADS=1 $run --memory 0.1 -o $out/memory.onnx > $out/memory.txt 2> $out/memory.err && cmp $out/whole.onnx $out/memory.onnx
verdict $? "--memory: the same bytes in half of the memory" "$(tail -n 1 $out/memory.err)"
OMP_NUM_THREADS=1 $run --memory 0.05 --quiet -o $out/little.onnx > $out/little.txt 2> $out/little.err
[ $? != 0 ] && enough=$(sed -n 's/.*--memory 0.05 is too little for 83 samples at a time on 1 threads: --memory \([0-9.]*\) is enough .*/\1/p' $out/little.err) &&
    echo "$enough" | awk '{ exit !($1 > 0.1 && $1 < 0.5) }'
verdict $? "--memory that is too little is refused, with how much is enough" "$(tail -n 1 $out/little.err)"

# What one ReLU a gate loses is said of the trained network, not of what it was made from.
cold="$out/reluize ../examples/sample/cnn_silu.onnx --data ../examples/pictures --samples 48 --quiet --cold -o $out/cold.onnx"
$cold > $out/cold.txt && ! grep -q 'One ReLU a gate' $out/cold.txt && $cold --steps 2 > $out/cold.txt
verdict $? "reluize --cold --steps"
grep 'One ReLU a gate will not do here: .*: more minutes or steps, --relus 2 or 3, or --within, come nearer' $out/cold.txt |
    awk '{ exit !($9 > 5 && $9 < 75) }'
verdict $? "the report says what the trained network loses, and what comes nearer" "$(grep 'One ReLU' $out/cold.txt)"

# Few samples, of which fewer are held out than a run could take: training is measured, too.
few=$(python_with numpy)
if [ -z "$few" ]; then echo "skip training with few samples: no Python with NumPy"
else
    $few -c "import numpy; numpy.save('$out/few.npy', numpy.random.default_rng(1).random((100, 1, 28, 28), dtype='f4'))"
    OMP_NUM_THREADS=1 $out/reluize ../examples/sample/cnn_silu.onnx --data $out/few.npy --steps 8 -o $out/few.onnx > $out/few.txt 2> $out/few.err
    loss=$(sed -n 's/.*loss on held-out samples \([^ ]*\) before, \([^ ]*\) at best.*/\1 \2/p' $out/few.txt)
    echo "$loss" | awk '{ exit !($2 > 0 && $2 < $1 && $1 > 1e-6) }'
    verdict $? "with few samples the loss falls, too" "from and to: $loss; $(tail -n 1 $out/few.err)"
fi

# interrupt NAME COMMAND...: begins a run on two threads that makes $out/NAME.onnx, and interrupts it after its first measurement
interrupt()
{
    name=$1
    shift
    OMP_NUM_THREADS=2 "$@" -o $out/$name.onnx > $out/$name.txt 2> $out/$name.err &
    wait_until grep -q '^distilled' $out/$name.err
    kill -INT $!
    wait $!
}

# The same on two threads, interrupted.
interrupt part $run
if [ ! -s $out/part.onnx.distil ]; then echo "skip an interrupted run: it had ended before"
else
    [ ! -s $out/part.txt ]
    verdict $? "an interrupted run leaves its state and prints no report"
    cp $out/part.onnx.distil $out/other.onnx.distil
    OMP_NUM_THREADS=2 $run --rate 0.001 -o $out/other.onnx > $out/other.txt 2> $out/other.err
    grep -q 'the state of another run' $out/other.err && ! cmp -s $out/whole.onnx $out/other.onnx
    verdict $? "a run at another rate does not continue it" "$(tail -n 1 $out/other.err)"
    bytes=$(wc -c < $out/part.onnx.distil)
    for harm in 'cut off' 'a changed byte'; do
        cp $out/part.onnx.distil $out/harmed.onnx.distil
        if [ "$harm" = 'cut off' ]; then head -c $((bytes / 2)) $out/part.onnx.distil > $out/harmed.onnx.distil
        else printf '\377' | dd of=$out/harmed.onnx.distil bs=1 seek=81 conv=notrunc 2> $out/dd.err
        fi
        OMP_NUM_THREADS=2 $run -o $out/harmed.onnx > $out/harmed.txt 2> $out/harmed.err
        grep -q 'damaged or cut off: it is not used' $out/harmed.err && cmp $out/whole.onnx $out/harmed.onnx
        verdict $? "a state with damage, $harm: the run begins again" "$(tail -n 1 $out/harmed.err)"
    done
    OMP_NUM_THREADS=2 $run -o $out/part.onnx > $out/part.txt 2> $out/part.err
    verdict $? "the same command again" "$(tail -n 1 $out/part.err)"
    grep -q 'continues from step' $out/part.err
    verdict $? "it continues"
fi
cmp $out/whole.onnx $out/part.onnx
verdict $? "the same bytes on two threads and after an interruption"

# A folder has the name of the state: the run is refused before its work, and the folder stays.
for state in folder.onnx.distil folder.onnx.rival; do
    rm -rf $out/folder.onnx*
    mkdir -p $out/$state
    $out/reluize ../examples/sample/cnn_silu.onnx --data ../examples/pictures --samples 48 --epochs 1 --rival --quiet -o $out/folder.onnx > $out/folder.txt 2> $out/folder.err
    [ $? = 1 ] && grep -q "$state: the state of the training: " $out/folder.err && [ $(wc -l < $out/folder.err) = 1 ] && [ -d $out/$state ] && [ ! -e $out/folder.onnx ]
    verdict $? "$state, a folder: the run is refused, and the folder stays" "$(tail -n 1 $out/folder.err)"
done

# Labels: the network learns them, and so does a cold swap, the control; the same bits on any number of threads.
labelled="$out/reluize ../examples/sample/cnn_silu.onnx --data ../examples/pictures --samples 48 --epochs 1 --quiet"
OMP_NUM_THREADS=1 $labelled --rival -o $out/labelled.onnx --report $out/labelled.json > $out/labelled.txt 2> $out/labelled.err
verdict $? "reluize --epochs" "$(tail -n 1 $out/labelled.err)"
nats() { sed -n "s/.*\"$1\": {\"score\": [0-9.]*, \"nats\": \([0-9.]*\),.*/\1/p" $out/labelled.json; }
echo "$(nats before) $(nats refitted) $(nats tuned) $(nats cold) $(nats rival)" | awk '{ exit !(NF == 5 && $3 < $1 && $3 < $2 && $3 < $5 && $5 < $4) }'
verdict $? "its loss on test images is below the original's, the conversion's and that of a cold swap that learned as long" \
    "$(nats tuned) nats, before $(nats before), refitted $(nats refitted), rival $(nats rival), cold $(nats cold)"
grep -q '"written": "tuned"' $out/labelled.json && [ -s $out/labelled.onnx.svg ] ||
    grep -q '"written": "refitted"' $out/labelled.json
verdict $? "the best of them on held-out images is written" "$(grep -o '"written": "[a-z]*"' $out/labelled.json)"
OMP_NUM_THREADS=2 $labelled --rival -o $out/labelled_2.onnx > $out/labelled.txt 2> $out/labelled.err
cmp $out/labelled.onnx $out/labelled_2.onnx
verdict $? "--epochs: the same bytes on two threads"

# Labels beside the original: other weights, the same on any number of threads and after an interruption; refused where there are none.
both="$out/reluize ../examples/sample/cnn_silu.onnx --data ../examples/pictures --samples 48 --steps 8 --label-weight 0.5"
OMP_NUM_THREADS=1 $both -o $out/both.onnx --quiet > $out/both.txt 2> $out/both.err
grep -q 'inputs as they are, labels with a weight of 0.5; loss' $out/both.txt && ! cmp -s $out/both.onnx $out/whole.onnx
verdict $? "--steps with --label-weight" "$(tail -n 1 $out/both.err)"
interrupt both_2 $both
if [ ! -s $out/both_2.onnx.distil ]; then echo "skip an interrupted run with labels beside the original: it had ended before"
else
    cp $out/both_2.onnx.distil $out/other.onnx.distil
    $run -o $out/other.onnx > $out/other.txt 2> $out/other.err
    grep -q 'the state of another run' $out/other.err && cmp $out/whole.onnx $out/other.onnx
    verdict $? "a run without them does not continue it" "$(tail -n 1 $out/other.err)"
    OMP_NUM_THREADS=2 $both -o $out/both_2.onnx > $out/both.txt 2> $out/both.err
    grep -q 'continues from step' $out/both.err
    verdict $? "the same command continues it" "$(tail -n 1 $out/both.err)"
fi
cmp $out/both.onnx $out/both_2.onnx
verdict $? "--label-weight: the same bytes on two threads and after an interruption"
# refused_weight WHAT TEXT ARGUMENTS...
refused_weight()
{
    what=$1 text=$2
    shift 2
    "$@" -o $out/none.onnx --label-weight 1 > $out/none.txt 2> $out/none.err
    [ $? != 0 ] && grep -q -e "$text" $out/none.err && [ ! -e $out/none.onnx ]
    verdict $? "--label-weight $what is refused" "$(tail -n 1 $out/none.err)"
}
sample="$out/reluize ../examples/sample/cnn_silu.onnx"
refused_weight 'without a run' 'is for --minutes and --steps' $sample --data ../examples/pictures
refused_weight 'with --augment' 'images that --augment mixes have no labels' $sample --data ../examples/pictures --steps 1 --augment
[ ! -s $out/few.npy ] || refused_weight 'without labels' 'requires labels, and there are none' $sample --data $out/few.npy --steps 1
refused_weight 'of an inner value' "'.*' is no output of the model" $sample --data ../examples/pictures --steps 1 --output pool/last

# Interrupted while the conversion is trained: the cold swap, which is finished, is not trained again.
# is_in_second_run: whether one run of training has ended and the last line of progress is of a later one
is_in_second_run()
{
    grep -q '100 %' $out/part.err && tail -n 1 $out/part.err > $out/progress &&
        grep -q ': [1-9][0-9]* %, step' $out/progress && ! grep -q '100 %' $out/progress
}
$(echo "$labelled" | sed 's/ --quiet//') --rival -o $out/labelled_2.onnx > $out/labelled.txt 2> $out/part.err &
wait_until is_in_second_run
kill -INT $!
wait $!
if [ ! -s $out/labelled_2.onnx.distil ]; then echo "skip an interrupted run with labels: it had ended before"
else
    $labelled --rival -o $out/labelled_2.onnx > $out/labelled.txt 2> $out/part.err
    verdict $? "the same command with labels again" "$(tail -n 1 $out/part.err)"
    [ "$(grep -c 'continues from step' $out/part.err)" = 2 ] && [ ! -e $out/labelled_2.onnx.distil ] && [ ! -e $out/labelled_2.onnx.rival ]
    verdict $? "both runs continue, and their states are gone at the end" "$(grep continues $out/part.err)"
    cmp $out/labelled.onnx $out/labelled_2.onnx
    verdict $? "--epochs: the same bytes after an interruption"
fi

$run --augment --train-size 24 --steps 1 -o $out/other.onnx > $out/other.txt 2>&1
grep -q 'images mirrored, scaled, moved and mixed' $out/other.txt
verdict $? "--augment and --train-size" "$(tail -n 1 $out/other.txt)"
$out/reluize ../examples/sample/cnn_silu.onnx --data ../examples/pictures --augment -o $out/none.onnx 2> $out/none.err
[ $? = 2 ] && grep -q 'are for --minutes, --steps and --epochs' $out/none.err
verdict $? "--augment without a run is refused"

numpy=$(python_with numpy)
if [ -z "$numpy" ]; then echo "skip the precision of boxes: no Python with NumPy"; exit $bad; fi
# One class, two objects and a crowd: a right box, a wrong one, one in the crowd and a right one, which counts where it overlaps enough.
said=$($numpy - $out <<'P' 2>&1
import json
import sys
sys.path.insert(0, 'tools')
import numpy as np
import detector_boxes as d
places = [(10, 10, 20, 20), (50, 50, 10, 10), (70, 70, 20, 20)]
json.dump({'categories': [{'id': 7}], 'images': [{'id': 1, 'file_name': 'a', 'height': 100, 'width': 100}],
           'annotations': [{'image_id': 1, 'category_id': 7, 'bbox': p, 'iscrowd': int(k == 2)} for k, p in enumerate(places)]},
          open(sys.argv[1] + '/labels.json', 'w'))
labels = d.Labels(sys.argv[1] + '/labels.json', 200, 200)
box = lambda score, x, y, w, h: np.array([0, score, 2 * x, 2 * y, 2 * x + 2 * w, 2 * y + 2 * h])
found = [box(.9, *places[0]), box(.8, 30, 80, 5, 5), box(.75, 72, 72, 9, 9), box(.7, 50, 50, 10, 7.2)]
all, half = d.precision([labels.matches(0, found)])
two, one = (51 + 50 * 2 / 3) / 101, 51 / 101
assert abs(half - 100 * two) < 1e-6 and abs(all - 100 * (5 * two + 5 * one) / 10) < 1e-6, (all, half)
P
)
verdict $? "mAP50:95 and mAP50 of a case counted by hand" "$said"
exit $bad
