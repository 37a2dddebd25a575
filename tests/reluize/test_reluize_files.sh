# SPDX-License-Identifier: MIT-0
# test_reluize_files.sh: reluize on files as people have them (tools/onnx_zoo_files.py), and on the small networks of tools/onnx_zoo.py
# and tools/onnx_zoo_more.py that have smooth gates. Each is converted; only gates and numbers change in the file; onnx_run and ONNX
# Runtime compute the same from what was written; the refit is nearer to the original than the cold swap. A table shows which.
out=build/reluize_files
. tools/job.sh
torch=$(python_with torch.onnx,onnx)
onnx_runtime && runtime=yes || runtime=
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
$CC $RELUIZE $IMPLEMENTATION -o $out/reluize -lm || exit 1
$CC $PARTS_FOLDER/onnx_run_main.o $PARTS_FOLDER/onnx_program.o $(echo $RELUIZE | tr ' ' '\n' | grep -e '/onnx_run' -e int8_product -e int8_planes -e onnx_graph -e npy.o -e output.o) $IMPLEMENTATION \
    -o $out/onnx_run -lm || exit 1
if [ -z "$torch" ]; then echo "skip files as people have them: $no_torch"; exit 0; fi
torch_zoo || exit 1
cp build/torch_zoo/* $out
if ! $torch tools/onnx_zoo_files.py $out > $out/list 2> $out/log; then
    echo "FAIL networks of PyTorch: $(tail -n 1 $out/log)"
    exit 1
fi
$torch tools/onnx_zoo_arrays.py $out < build/torch_zoo/list >> $out/list
# NAME: the arguments with which onnx_run writes each output
$torch - $out > $out/outputs << 'P'
import onnx, sys
for line in open(f"{sys.argv[1]}/list"):
    name = line.split()[0]
    outputs = onnx.load(f"{sys.argv[1]}/{name}.onnx").graph.output
    print(name, *(f"--output {o.name}={sys.argv[1]}/{name}.{o.name}.npy" for o in outputs), sep="\t")
P
: > $out/converted
relus=0
while IFS='	' read -r name inputs; do
    given=; run=
    for input in $inputs; do
        given="$given --data ${input%%=*}=$out/${input#*=}"
        run="$run --input ${input%%=*}=$out/${input#*=}"
    done
    $out/reluize $out/$name.onnx $given -o $out/$name.relu.onnx --report $out/$name.json --quiet > $out/stdout 2> $out/stderr
    status=$?
    # a network without smooth gates is written as it is
    if [ $status = 0 ] && grep -q '"same"' $out/$name.json; then
        cmp $out/$name.onnx $out/$name.relu.onnx > $out/stdout
        verdict $? "$name has no smooth gate: it is the same file" "$(cat $out/stdout)"
        relus=$((relus + 1))
        continue
    fi
    verdict $status "$name is converted" "$(tail -n 1 $out/stderr)" || continue
    [ $status = 0 ] || continue
    outputs=$(awk -F '\t' -v name="$name" '$1 == name { $1 = ""; print }' $out/outputs)
    case $name in *_fixed) inputs=input=$name.once.npy; run="--input input=$out/$name.once.npy" ;; esac
    $out/onnx_run $out/$name.relu.onnx $run $outputs > $out/stdout 2> $out/stderr
    verdict $? "$name: onnx_run evaluates what was written" "$(tail -n 1 $out/stderr)"
    printf '%s\t%s\n' "$name" "$inputs" >> $out/converted
done < $out/list
$torch tools/onnx_same.py $(awk -v out=$out '{ printf "%s/%s.onnx %s/%s.relu.onnx ", out, $1, out, $1 }' $out/converted) > $out/same 2> $out/stderr
verdict $? "only gates and numbers change in all of them" "$(tail -n 1 $out/same $out/stderr)"
[ $(wc -l < $out/converted) -ge 100 ]
verdict $? "at least 100 of $(wc -l < $out/list) files are converted; $relus have no smooth gate" "$(wc -l < $out/converted)"
if [ -n "$runtime" ]; then
    tr ' ' '\t' < $out/converted | node tools/onnx_files.js $out > $out/runtime || bad=1
    grep -v '^ok' $out/runtime && bad=1
    [ $(grep -c '^ok' $out/runtime) = $(wc -l < $out/converted) ]
    verdict $? "ONNX Runtime computes what onnx_run does in all $(wc -l < $out/converted)"
else echo "skip ONNX Runtime's values of the files written: $no_runtime"; fi
nearer=$($torch -c "
import json, sys
near = [json.load(open(f'$out/{l.split()[0]}.json')) for l in open('$out/converted')]
print(sum(r['refitted']['mean_dlogit'] < r['cold']['mean_dlogit'] for r in near), len(near))")
set -- $nearer
[ $((10 * $1)) -ge $((9 * $2)) ]
verdict $? "the refit is nearer than the cold swap in nine of ten" "$nearer"
exit $bad
