# SPDX-License-Identifier: MIT-0
# test_onnx_zoo.sh: small networks after the families of torchvision, timm and Hugging Face (tools/onnx_zoo.py and
# tools/onnx_zoo_more.py), as PyTorch exports them: each is read with PyTorch's outputs, trained a few steps, and written again with
# outputs that ONNX Runtime agrees with to 1e-4, or it is refused in the line that is expected. A table shows which.
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
$CC -std=c99 -O1 $WARNINGS tools/onnx_zoo.c $PARTS_FOLDER/onnx_out.o $ONNX_READER ${IMPLEMENTATION:-tools/lgelu.c} \
    -lm -o $out/onnx_zoo || exit 1
torch_zoo || exit 1
cp build/torch_zoo/list $out/list
$out/onnx_zoo $out/list build/torch_zoo $out/again > $out/rows || exit 1
awk -F '\t' 'FNR == NR { done[$1] = $2 == "done"; next } done[$1]' $out/rows $out/list > $out/written
node tools/onnx_run.js $out/written $out/again 1e-4 > $out/runtime
printf '# %-24s %-4s %-8s %-4s %s\n' network in trained out agrees
while IFS='	' read -r name what why expected; do
    case $what in
    done)
        said=$(grep "^FAIL $name in" $out/runtime)
        [ -z "$said" ]
        verdict $? "$name: in, trained, out, as ONNX Runtime computes it" "$said"
        if [ -z "$said" ]; then said=yes; fi
        printf '# %-24s %-4s %-8s %-4s %s\n' $name yes yes yes "$said" ;;
    refused)
        case "$why" in
        *"${expected:-is to be read}"*) verdict 0 "$name: refused as expected" ;;
        *) verdict 1 "$name" "$why" ;;
        esac
        printf '# %-24s refused: %s\n' $name "$why" ;;
    *)
        verdict 1 "$name: $what" "$why"
        printf '# %-24s %s: %s\n' $name "$what" "$why" ;;
    esac
done < $out/rows
grep '^#' $out/runtime
echo "# $(wc -l < $out/written) of $(wc -l < $out/list) networks"
[ $(wc -l < $out/list) = $(wc -l < $out/rows) ]
verdict $? "every network of the list was tried"
exit $bad
