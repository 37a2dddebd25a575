# SPDX-License-Identifier: MIT-0
# verdict.sh: the functions that all tests in shell have in common: how a case is reported, and where other programs are found.
bad=0

# verdict STATUS NAME [WHY]: reports a case, and sets $bad to 1 if it failed.
verdict() { if [ "$1" = 0 ]; then echo "ok $2"; else echo "FAIL $2${3:+: $3}"; bad=1; fi; }

# python_with MODULES: prints a python3 that has these modules, or nothing. Without python3 in PATH, none is looked for.
python_with() { command -v python3 > /dev/null || return; for p in python3 /usr/bin/python3; do $p -c "import $1" 2> /dev/null && { echo $p; return; }; done; }

# onnx_runtime: succeeds if node has ONNX Runtime: the package onnxruntime-node, in build/onnxruntime or in NODE_PATH.
onnx_runtime()
{
    NODE_PATH=${NODE_PATH:-$PWD/build/onnxruntime/node_modules}
    export NODE_PATH
    node -e 'require("onnxruntime-node")' 2> /dev/null
}
no_onnx='not installed (Debian: python3-onnx)'
no_torch='not installed (Debian: python3-torch)'
no_mpmath='not installed (Debian: python3-mpmath)'
no_runtime='not installed (node, npm install --ignore-scripts onnxruntime-node)'
