# SPDX-License-Identifier: MIT-0
# test_deploy_torch.sh: weights with PyTorch's names and shapes, both ways: load_state_dict(strict=True) takes what torch_file.c
# wrote, and gives its logits to 1e-4; what torch makes of the weights is read again, as F32, F64, F16, BF16. Arrays are .npy.
CC=${CC:-cc}
OMP_NUM_THREADS=1
export OMP_NUM_THREADS
out=build/deploy_torch
mkdir -p $out
. tools/verdict.sh
python=$(python_with torch,numpy)
if [ -z "$python" ]; then echo "skip weights with PyTorch's names: $no_torch"; exit 0; fi
$CC -std=c99 -O1 -I.. tools/deploy_torch.c ${IMPLEMENTATION:-tools/lgelu.c} -o $out/net -lm || exit 1
for name in mlp lenet resnet18 vit gpt; do $out/net $name write $out/$name || exit 1; done
$python tools/deploy_torch.py $out || exit 1
for name in mlp lenet resnet18 vit gpt; do
    for type in F32 F64 F16 BF16 fortran; do
        [ -f $out/$name.$type.safetensors ] || continue
        error=$($out/net $name read $out/$name.$type) || { echo "FAIL $name: torch's weights as $type"; exit 1; }
        if awk "BEGIN { exit !($error < 1e-4) }"; then echo "ok $name: torch's weights as $type give its logits"
        else echo "FAIL $name: torch's weights as $type: logits off by $error of the largest"; fi
    done
done
