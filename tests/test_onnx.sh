# SPDX-License-Identifier: MIT-0
# test_onnx.sh: networks as ONNX files, judged by others: onnx.checker (Debian: python3-onnx) and ONNX Runtime (node and the package
# onnxruntime-node: npm install --ignore-scripts --prefix build/onnxruntime onnxruntime-node, or anywhere that NODE_PATH names).
CC=${CC:-cc}
out=build/onnx
mkdir -p $out/nets
python=
for p in python3 /usr/bin/python3; do $p -c 'import onnx' 2> /dev/null && { python=$p; break; }; done
NODE_PATH=${NODE_PATH:-$PWD/build/onnxruntime/node_modules}
OMP_NUM_THREADS=1
export NODE_PATH OMP_NUM_THREADS
runtime=
node -e 'require("onnxruntime-node")' 2> /dev/null && runtime=yes
bad=0

$CC -std=c99 -O1 -c ../examples/data.c -o $out/data.o || exit 1
$CC -std=c99 -O1 $WARNINGS -c ../examples/deploy/onnx_out.c -o $out/onnx_out.o || exit 1
$CC -std=c99 -O1 $WARNINGS tools/onnx_nets.c $out/onnx_out.o $out/data.o ${IMPLEMENTATION:-tools/lgelu.c} -o $out/onnx_nets -lm || exit 1
if $out/onnx_nets $out/nets > $out/list; then echo "ok $(wc -l < $out/list) networks become ONNX files"; else echo "FAIL networks become ONNX files"; exit 1; fi
if [ -n "$python" ]; then $python tools/onnx_check.py $out/list $out/nets || bad=1
else echo "skip every file passes onnx.checker: not installed (Debian: python3-onnx)"; fi
if [ -n "$runtime" ]; then node tools/onnx_run.js $out/list $out/nets 1e-5 || bad=1
else echo "skip ONNX Runtime's outputs are ours: not installed (node, npm install --ignore-scripts onnxruntime-node)"; fi
exit $bad
