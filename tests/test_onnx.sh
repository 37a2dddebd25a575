# SPDX-License-Identifier: MIT-0
# test_onnx.sh: networks as ONNX files, judged by others: onnx.checker (Debian: python3-onnx), ONNX Runtime (node and the package
# onnxruntime-node: npm install --ignore-scripts --prefix build/onnxruntime onnxruntime-node, or anywhere that NODE_PATH names) and
# PyTorch (Debian: python3-torch), whose own files are read, run and written again.
CC=${CC:-cc}
out=build/onnx
mkdir -p $out/nets $out/torch $out/nets_again $out/torch_again
onnx= torch=
for p in python3 /usr/bin/python3; do
    [ -z "$onnx" ] && $p -c 'import onnx' 2> /dev/null && onnx=$p
    [ -z "$torch" ] && $p -c 'import torch.onnx' 2> /dev/null && torch=$p
done
NODE_PATH=${NODE_PATH:-$PWD/build/onnxruntime/node_modules}
OMP_NUM_THREADS=1
export NODE_PATH OMP_NUM_THREADS
runtime=
node -e 'require("onnxruntime-node")' 2> /dev/null && runtime=yes
no_runtime='not installed (node, npm install --ignore-scripts onnxruntime-node)'
bad=0

$CC -std=c99 -O1 -c ../examples/data.c -o $out/data.o || exit 1
for f in onnx_out onnx_in; do $CC -std=c99 -O1 $WARNINGS -c ../examples/deploy/$f.c -o $out/$f.o || exit 1; done
library="$out/onnx_out.o $out/onnx_in.o ${IMPLEMENTATION:-tools/lgelu.c} -lm"
$CC -std=c99 -O1 $WARNINGS tools/onnx_nets.c $out/data.o $library -o $out/onnx_nets || exit 1
$CC -std=c99 -O1 $WARNINGS tools/onnx_back.c $library -o $out/onnx_back || exit 1

echo "# our networks, written"
if $out/onnx_nets $out/nets > $out/list; then echo "ok $(wc -l < $out/list) networks become ONNX files"
else echo "FAIL networks become ONNX files"; exit 1; fi
if [ -n "$onnx" ]; then $onnx tools/onnx_check.py $out/list $out/nets || bad=1
else echo "skip every file passes onnx.checker: not installed (Debian: python3-onnx)"; fi
if [ -n "$runtime" ]; then node tools/onnx_run.js $out/list $out/nets 1e-5 || bad=1
else echo "skip ONNX Runtime's outputs are ours: $no_runtime"; fi
echo "# and read again"
$out/onnx_back $out/list $out/nets 1e-6 $out/nets_again || bad=1

if [ -n "$torch" ]; then
    echo "# networks of PyTorch, read"
    if $torch tools/onnx_torch.py $out/torch > $out/torch.list 2> $out/torch.log; then
        $out/onnx_back $out/torch.list $out/torch 1e-5 $out/torch_again || bad=1
        if [ -n "$runtime" ]; then
            echo "# and written again"
            node tools/onnx_run.js $out/torch.list $out/torch_again 1e-5 || bad=1
        else echo "skip networks of PyTorch, written again, in ONNX Runtime: $no_runtime"; fi
    else echo "FAIL networks of PyTorch: $(tail -n 1 $out/torch.log)"; bad=1; fi
else echo "skip networks of PyTorch: not installed (Debian: python3-torch)"; fi
exit $bad
