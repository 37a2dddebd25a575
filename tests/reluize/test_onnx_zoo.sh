# SPDX-License-Identifier: MIT-0
# test_onnx_zoo.sh: small networks after the families of torchvision, timm and Hugging Face (tools/onnx_zoo.py and
# tools/onnx_zoo_more.py), as PyTorch exports them: each is evaluated with PyTorch's outputs and trained a few steps over its graph,
# which lowers its loss, and ONNX Runtime computes from the file with the new weights what the evaluator does, to 1e-4. A table
# shows which.
CC=${CC:-cc}
out=build/zoo
mkdir -p $out/again
. tools/verdict.sh
torch=$(python_with torch.onnx)
onnx_runtime && runtime=yes || runtime=
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
if [ -z "$torch" ]; then echo "skip networks of torchvision, timm and Hugging Face: $no_torch"; exit 0; fi
if [ -z "$runtime" ]; then echo "skip networks of torchvision, timm and Hugging Face: $no_runtime"; exit 0; fi
$CC -std=c99 -O1 $WARNINGS tools/onnx_zoo.c $ONNX_DISTIL ${IMPLEMENTATION:-tools/lgelu.c} -lm -o $out/onnx_zoo || exit 1
torch_zoo || exit 1
cp build/torch_zoo/list $out/list
$out/onnx_zoo $out/list build/torch_zoo $out/again > $out/rows || exit 1
awk -F '\t' 'FNR == NR { done[$1] = $3 == "done"; next } done[$1]' $out/rows $out/list > $out/written
node tools/onnx_run.js $out/written $out/again 1e-4 > $out/runtime
printf '# %-24s %10s  %s\n' network weights 'evaluated, trained, the same in ONNX Runtime'
while IFS='	' read -r name weights why; do
    said=$(grep "^FAIL $name in" $out/runtime)
    [ "$why" = done ] || said=$why
    [ -z "$said" ]
    verdict $? "$name: evaluated as by PyTorch, trained, and as ONNX Runtime computes it" "$said"
    printf '# %-24s %10s  %s\n' $name $weights "${said:-yes}"
done < $out/rows
grep '^#' $out/runtime
echo "# $(wc -l < $out/written) of $(wc -l < $out/list) networks"
[ $(wc -l < $out/list) = $(wc -l < $out/rows) ]
verdict $? "every network of the list was tried"
exit $bad
