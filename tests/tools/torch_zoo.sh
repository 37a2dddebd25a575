# SPDX-License-Identifier: MIT-0
# torch_zoo.sh: exports the networks of onnx_zoo.py and onnx_zoo_more.py by PyTorch into build/torch_zoo, whose file list has a line for
# each. make runs it once for the tests that read them (torch_zoo in verdict.sh). Without PyTorch it does nothing.
out=build/torch_zoo
. tools/verdict.sh
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
rm -rf $out
torch=$(python_with torch.onnx)
[ -n "$torch" ] || exit 0
mkdir -p $out
$torch tools/onnx_zoo_more.py $out > $out/all 2> $out/log && mv $out/all $out/list
