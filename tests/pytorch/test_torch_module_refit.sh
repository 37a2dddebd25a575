# SPDX-License-Identifier: MIT-0
# test_torch_module_refit.sh: lgelu.refit of examples/torch beside the engine on files that PyTorch exports; on models after the structure
# of torchvision's, timm's, diffusers' and Hugging Face's; its refusals; a failure at each line that changes the model; the page's snippets.
CC=${CC:-cc}
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
out=build/torch_module_refit
. tools/verdict.sh
python=$(python_with torch,numpy)
if [ -z "$python" ]; then echo "skip lgelu.refit: $no_torch"; exit 0; fi
rm -rf $out
mkdir -p $out/refits
torch_libraries
engine="$(ls ../examples/reluize/ops/*.c ../examples/reluize/passes/onnx_relu*.c ../examples/reluize/passes/onnx_rewrite.c) ../examples/reluize/passes/onnx_gates.c ../examples/reluize/onnx/onnx_graph.c ../examples/reluize/passes/least_squares.c"
$CC -std=c99 -O1 $WARNINGS tools/onnx_relu.c $(built ../examples/reluize/onnx/npy.c $engine) ${IMPLEMENTATION:-tools/lgelu.c} -o $out/onnx_relu -lm || exit 1
PYTHONPATH=../examples/torch PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH PYTHONDONTWRITEBYTECODE
for part in "torch_refit.py $out/refits $out/onnx_relu" torch_refit_models.py; do
    $python tools/$part 2> $out/err || bad=1
    [ -s $out/err ] && { echo "FAIL $part: $(tail -n 1 $out/err)"; bad=1; }
done

# The snippets of the page in a folder that has the four files that it names, and nothing else
mkdir -p $out/stranger && cp ../examples/torch/lgelu.py ../examples/torch/lgelu_refit.py $LGELU_TORCH_LIBRARY $LGELU_CONVERT_LIBRARY $out/stranger
tools=$PWD/tools readme=$PWD/../examples/torch/README.md
(cd $out/stranger && env -u LGELU_TORCH_LIBRARY -u LGELU_CONVERT_LIBRARY PYTHONPATH=. $python $tools/torch_readme.py $readme 2> ../err)
verdict $? "the snippets of README.md run in a folder of their own" "$(tail -n 1 $out/err)"
exit $bad
