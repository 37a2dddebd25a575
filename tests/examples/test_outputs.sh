# SPDX-License-Identifier: MIT-0
# test_outputs.sh: no program of examples/ replaces a file that it reads, by whatever name, symbolic link or hard link the output
# option names it. The file is unchanged, and the program ends with one line and a status other than 0.
out=build/outputs
. tools/job.sh
build() { program=$1; shift; log=$($CC -std=c99 -O1 "$@" $IMPLEMENTATION -o $out/$program -lm 2>&1) ||
    { echo "FAIL $program compiles: $(echo "$log" | grep -m1 error)"; exit 1; }; }
build study $STUDY
build reluize $RELUIZE
build measure $MEASURE
build onnx_nets tools/onnx_nets.c ../examples/network/onnx_out.c ../examples/common/data.c
build 2_mlp $(declared ../examples/tutorials/2_mlp.c) ../examples/common/data.c ../examples/tutorials/tutorial.c
build 4_gpt $(declared ../examples/tutorials/4_gpt.c) ../examples/common/text.c ../examples/tutorials/tutorial.c
mkdir $out/nets && $out/onnx_nets $out/nets > $out/nets.out || exit 1
tiny $out/tiny
three_classes 60 > $out/rows.csv
head -c 6000 ../README.md > $out/text.txt
mkdir -p $out/bands/a $out/bands/b
for c in a b; do for i in 0 1 2 3 4 5 6 7 8 9; do
    { printf 'P5 28 28 255\n'; head -c $((3000 + 784 * i)) ../examples/pictures/train_0.png | tail -c 784; } > $out/bands/$c/$i.pgm
done; done

# kept NAME INPUT COMMAND...: the command's argument OVER is the input by four names; each time it is refused
kept()
{
    name=$1 input=$2
    shift 2
    folder=$(dirname $input)
    for way in name path symbolic hard; do
        over=$(dirname $out)/outputs/$way.$(basename $input)
        rm -f $over
        case $way in
        name) over=$input ;;
        path) over=$folder/../$(basename $folder)/./$(basename $input) ;;
        symbolic) ln -s "$PWD/$input" $over ;;
        hard) ln $input $over || continue ;;
        esac
        cp $input $out/was
        find $out | sort > $out.before
        command=
        for word in "$@"; do [ "$word" = OVER ] && word=$over; command="$command '$word'"; done
        eval "$command" > $out/said 2> $out/errors
        status=$?
        find $out | sort > $out.after
        [ $status -ge 1 ] && [ $status -le 2 ] && cmp $input $out/was > /dev/null 2>&1 && [ "$(wc -l < $out/errors)" -ge 1 ] &&
            tail -n 1 $out/errors | grep -q "${says:-this file is read by the same run}" && cmp $out.before $out.after > /dev/null 2>&1
        verdict $? "$name is not replaced, $way" "status $status, $(tail -n 1 $out/errors), $(diff $out.before $out.after | tail -n 1)"
        cmp $input $out/was > /dev/null 2>&1 || cp $out/was $input
    done
}
: > $out/said; : > $out/errors; : > $out/was
table="$out/study swap --data $out/rows.csv --net tabular --hidden 6 --epochs 1 --batch 8 --holdout 8 --seeds 1 --arms gelu --threads 1"
for option in csv json log save; do kept "study: data by --$option" $out/rows.csv $table --$option OVER; done
kept 'study: a file of IDX by --csv' $out/tiny/t10k-labels-idx1-ubyte $out/study swap --data $out/tiny --hidden 6 --epochs 1 --batch 90 --seeds 1 \
    --arms gelu --threads 1 --csv OVER
kept 'study: a text by --json' $out/text.txt $out/study swap --net gpt --text $out/text.txt --layers 1 --width 8 --heads 1 --context 8 --batch 4 \
    --steps 4 --epochs 1 --seeds 1 --arms gelu --threads 1 --json OVER
$table --save $out/a.st > $out/said 2> $out/errors
verdict $? 'study: a checkpoint' "$(tail -n 1 $out/errors)"
says='\(this file is read by the same run\|two options name this file\)'
for option in csv json log; do kept "study: --resume by --$option" $out/a.st $out/study swap --resume $out/a.st --$option OVER; done
for option in csv json log; do kept "study: --resume by --$option, with another --save" $out/a.st $out/study swap --resume $out/a.st \
    --save $out/b.st --$option OVER; rm -f $out/b.st; done
says=
$out/study swap --resume $out/a.st > $out/said 2> $out/errors && ln -s a.st $out/link.st && $out/study swap --resume $out/link.st > $out/said 2>> $out/errors
verdict $? 'study: a checkpoint that is resumed is saved to again, by a link, too' "$(tail -n 1 $out/errors)"
cp $out/rows.csv $out/tiny/swap_tabular.csv
says='this file is read by the same run' kept 'study: data by --out' $out/tiny/swap_tabular.csv $out/study swap --data $out/tiny/swap_tabular.csv \
    --net tabular --hidden 6 --epochs 1 --batch 8 --holdout 8 --seeds 1 --arms gelu --threads 1 --out $out/tiny
rm $out/tiny/swap_tabular.csv
says='two options name this file'
: > $out/once
kept 'study: two outputs of one file' $out/once $table --csv $out/once --json OVER
says=

r="$out/reluize $out/nets/mlp_lambda.onnx --data $out/rows.csv --epochs 1 --batch 20"
kept 'reluize: a table by -o' $out/rows.csv $r -o OVER
kept 'reluize: the model by -o' $out/nets/mlp_lambda.onnx $r -o OVER
kept 'reluize: the model by --int8' $out/nets/mlp_lambda.onnx $r -o $out/new.onnx --int8 OVER
kept 'reluize: a table by --report' $out/rows.csv $r -o $out/new.onnx --report OVER
kept 'reluize: a table, --standard, by -o' $out/rows.csv $r --standard -o OVER
kept 'reluize: a picture by --report' $out/bands/a/3.pgm $out/reluize $out/nets/lenet.onnx --data $out/bands --epochs 1 --batch 8 -o $out/new.onnx \
    --report OVER
says='two options name this file'
: > $out/once
kept 'reluize: two outputs of one file' $out/once $r -o $out/once --int8 OVER
says=
# A link to a file that does not exist yet, and another name of a folder.
ln -s new.onnx $out/to_new.onnx
$r -o $out/new.onnx --report $out/to_new.onnx > $out/said 2> $out/errors
verdict $([ $? = 2 ] && [ ! -e $out/new.onnx ]; echo $?) 'reluize: two outputs of one place' "$(cat $out/errors)"

$out/study swap --data $out/tiny --hidden 8 --seeds 1 --epochs 1 --batch 90 --arms gelu,hardened,relu,switched --threads 1 --keep $out/kept \
    > $out/said 2> $out/errors
verdict $? 'networks for measure' "$(tail -n 1 $out/errors)"
m="$out/measure int8 --data $out/tiny --networks $out/kept --seeds 1"
kept 'measure: a file of IDX by --csv' $out/tiny/train-images-idx3-ubyte $m --csv OVER
network=$(ls $out/kept/*hardened* | head -1)
kept 'measure: a network by --csv' $network $m --csv OVER

says='it is read as data'
kept '2_mlp: data by --save' $out/tiny/train-labels-idx1-ubyte $out/2_mlp --data $out/tiny --epochs 1 --save OVER
says='not of 4_gpt train'
kept '4_gpt: its text by --file' $out/text.txt $out/4_gpt train $out/text.txt --size '1 x 8, context 8, batch 4, steps 4, seed 1' --file OVER
says=

# an output beside the data, in the same folder, is not an input; it can be written twice
for i in 1 2; do $table --csv $out/beside.csv > $out/said 2> $out/errors; verdict $? "study: a file of its own is written, run $i" "$(cat $out/errors)"; done
verdict $([ "$(wc -l < $out/beside.csv)" -gt 3 ]; echo $?) 'study: with its lines' "$(wc -l < $out/beside.csv)"

python=$(python_with torch,numpy)
if [ -z "$python" ]; then echo "skip train.py: $no_torch"; exit $bad; fi
torch_libraries
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
cp ../examples/pictures/*.png $out/tiny
for way in symbolic hard; do
    mkdir -p $out/$way.example
    if [ $way = hard ]; then ln $out/tiny/train_1.png $out/$way.example/relu.in; else ln -s ../tiny/train_1.png $out/$way.example/relu.in; fi
    timeout 100 $python ../examples/torch/train.py --epochs 1 --data $out/tiny --out $out/$way.example > $out/said 2> $out/errors
    [ $? = 1 ] && cmp $out/tiny/train_1.png ../examples/pictures/train_1.png > /dev/null && grep -q 'relu.in: this file is read as data' $out/errors
    verdict $? "train.py: a sheet by --out is not replaced, $way" "$(tail -n 1 $out/errors)"
done
exit $bad
