# SPDX-License-Identifier: MIT-0
# test_torch_steps.sh: compares the first 200 steps of the MLP and of ResNet-8 with learned λ's with PyTorch, from the same weights and
# batches. Each loss must be within 1e-4 of PyTorch's in double. With SINGLE=1
# PyTorch's single precision is printed beside it.
CC=${CC:-cc}
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
out=build/torch_steps
mkdir -p $out
. tools/verdict.sh
python=$(python_with torch,numpy)
if [ -z "$python" ]; then echo "skip the first 200 steps beside PyTorch: $no_torch"; exit 0; fi
$CC -std=c99 -O2 -I.. tools/torch_steps.c ${IMPLEMENTATION:-tools/lgelu.c} -o $out/torch_steps -lm || exit 1
for net in mlp resnet8; do
    line=$($out/torch_steps $net $out) || exit 1
    $python tools/torch_steps.py $out $line || { echo "FAIL $net: PyTorch's side"; exit 1; }
done
