# SPDX-License-Identifier: MIT-0
# onnx_folder.sh OUT COMPARE RELUIZE FOLDER: every .onnx file under FOLDER through ONNX Runtime (onnx_folder.js) and the evaluator
# (COMPARE: onnx_random.c), with inputs drawn at random; and through reluize with one and with three ReLUs, what is written being
# evaluated by both again, and compared with the original in everything that a conversion must not change. OUT/table has a line for
# each file: what was found for the evaluation, for one ReLU and for three, and why. CONVERT=no: only the evaluation. Status 1:
# something differs.
#   agree      the last values are ONNX Runtime's to 1e-5 of the largest, and so is each node's from ONNX Runtime's inputs
#   grown      each node's are, but the last values are not: the roundings of others have grown
#   nan        as grown, where values are not numbers
#   differs    a node's values are not
#   refused    the evaluator ends with a message
#   missing    it lacks an operator
#   no         ONNX Runtime refuses the file, or it draws random numbers
#   changed    the conversion changed what it must not: see onnx_same.py
#   no gate    reluize finds no smooth gate
out=$1 compare=$2 reluize=$3 folder=$4
. tools/verdict.sh
onnx=$(python_with onnx)
onnx_runtime || { echo "skip: ONNX Runtime is $no_runtime"; exit 0; }
mkdir -p $out
: > $out/table

# evaluated MODEL: compares the evaluation of a file, in OUT/now; sets $found and $why
evaluated()
{
    rm -rf $out/now
    mkdir -p $out/now
    if ! timeout 200 node tools/onnx_folder.js "$1" $out/now/case $out/now/values $out/now > $out/now/inputs 2> /dev/null; then
        found=no why=$(head -n 1 $out/now/inputs)
        return
    fi
    timeout 600 $compare $out/now/case $out/now/values $out/now > $out/now/found 2>&1
    set -- $(grep '^counts' $out/now/found)
    if [ -z "$1" ]; then found=refused why="the program ended: $(tail -n 1 $out/now/found)"
    elif [ $6 != 0 ]; then found=differs
    elif [ $8 != 0 ]; then found=refused
    elif [ ${10} != 0 ]; then found=missing
    elif [ ${12} != 0 ]; then found=grown
    elif [ ${14} != 0 ]; then found=nan
    else found=agree; fi
    [ $found = agree ] && why="$4 nodes" || why=$(grep -v '^counts' $out/now/found | sed 's/^[A-Z]* graph 0[,:]* *//' | head -n 1)
}

# converted MODEL K: converts a file, whose inputs and external data are in OUT/inputs, with K ReLUs a gate; sets $found and $why
converted()
{
    set -- "$1" $2 $(while IFS='	' read -r name file; do printf -- '--data %s=%s ' "$name" "$out/inputs/$(basename $file)"; done < $out/inputs/list)
    model=$1 relus=$2
    shift 2
    rm -f $out/inputs/relu.onnx
    timeout 600 $reluize "$model" "$@" -o $out/inputs/relu.onnx --relus $relus --report $out/report.json --quiet > $out/said 2> $out/errors
    status=$?
    if [ $status != 0 ]; then
        found=refused why=$(tail -n 1 $out/errors)
        grep -q 'there is no smooth gate' $out/errors && found='no gate'
        [ $(wc -l < $out/errors) = 1 ] && [ ! -e $out/inputs/relu.onnx ] || found=differs why="status $status, not one line, or a file: $why"
        return
    fi
    if [ -n "$onnx" ]; then
        why=$($onnx tools/onnx_same.py "$model" $out/inputs/relu.onnx 2>&1 | tail -n 1)
        [ -z "$why" ] || { found=changed; return; }
    fi
    evaluated $out/inputs/relu.onnx
}

find "$folder" -name '*.onnx' | sort > $out/files
while read -r file; do
    evaluated "$file"
    row=$found reason=$why
    one= three=
    [ "$CONVERT" = no ] && found=
    case $found in agree|grown)
        rm -rf $out/inputs
        mv $out/now $out/inputs
        mv $out/inputs/inputs $out/inputs/list
        converted "$file" 1
        one=$found reason="$reason; $why"
        if [ "$one" != 'no gate' ] && [ "$one" != refused ]; then
            converted "$file" 3
            three=$found
            [ "$one" = "$three" ] || reason="$reason; $why"
        fi
    esac
    printf '%s\t%s\t%s\t%s\t%s\n' "${file#$folder/}" "$row" "$one" "$three" "$reason" >> $out/table
done < $out/files
awk -F '\t' '
    { n[$2]++; if ($3 != "") { one[$3]++ } if ($4 != "") three[$4]++ }
    function line(title, of,  k, text) { for (k in of) text = text (text ? ", " : "") of[k] " " k; print "# " title ": " text }
    END { line(NR " files, the evaluation", n); line("converted with one ReLU a gate", one); line("with three", three)
          exit n["differs"] + one["differs"] + three["differs"] + one["changed"] + three["changed"] > 0 }' $out/table
verdict $? "no file is evaluated or converted otherwise than ONNX Runtime computes it" "see $out/table"
exit $bad
