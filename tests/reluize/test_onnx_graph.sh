# SPDX-License-Identifier: MIT-0
# test_onnx_graph.sh: ONNX files through onnx_graph.[ch]: written without edits, all bytes are the same; with edits, the package
# onnx, which makes the same edits, finds the same model. The files: the node tests of python3-onnx, and the networks of
# tools/onnx_zoo.py and tools/onnx_zoo_more.py.
CC=${CC:-cc}
out=build/graph
rm -rf $out/edited
mkdir -p $out/edited $out/nodes
. tools/verdict.sh
onnx=$(python_with onnx)
torch=$(python_with torch.onnx)
name='files written without edits are the same, and with edits the package onnx finds the same'
if [ -z "$onnx" ]; then echo "skip $name: $no_onnx"; exit 0; fi
$CC -std=c99 -O1 $WARNINGS tools/onnx_edit.c ../examples/reluize/onnx/onnx_graph.c -lm -o $out/onnx_edit || exit 1
$onnx tools/onnx_conformance.py models $out/nodes > $out/list 2> $out/log || { echo "FAIL node tests: $(tail -n 1 $out/log)"; exit 1; }
if [ -n "$torch" ]; then
    torch_zoo || exit 1
    for f in build/torch_zoo/*.onnx; do echo $f; done >> $out/list
else echo "skip $name: networks of PyTorch: $no_torch"; fi
$out/onnx_edit $out/edited < $out/list || bad=1
$onnx tools/onnx_edit_check.py $out/edited $(($(wc -l < $out/list))) || bad=1
exit $bad
