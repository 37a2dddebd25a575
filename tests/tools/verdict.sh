# SPDX-License-Identifier: MIT-0
# verdict.sh: the functions that all tests in shell have in common: how a case is reported, and where other programs are found.
bad=0

# include_flags EXAMPLES: prints the flags by which files of this copy of examples include each other
include_flags() { for folder in common tutorials reluize/onnx reluize/ops reluize/passes reluize/app network verify verify/measure int8 study; do echo "-I$1/$folder"; done; }
# Compilers look there, too, and in this folder and the one above.
CPATH=${CPATH:-$PWD/..:$PWD$(include_flags "$PWD/../examples" | sed 's/^-I/:/' | tr -d '\n')}
export CPATH

# verdict STATUS NAME [WHY]: reports a case, and sets $bad to 1 if it failed.
verdict() { if [ "$1" = 0 ]; then echo "ok $2"; else echo "FAIL $2${3:+: $3}"; bad=1; fi; }

# stage NAME: succeeds if this part of a test is wanted: all are, unless $STAGE names one.
stage() { [ "${STAGE:-$1}" = "$1" ]; }

# wait_until COMMAND ARGUMENTS: runs the command every tenth of a second until it succeeds, for five minutes at most
wait_until()
{
    tries=0
    until "$@" || [ $tries -ge 3000 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
}

# python_with MODULES: prints a python3 that has these modules, or nothing. Without python3 in PATH, none is looked for. They are looked
# up and not imported, which takes seconds for PyTorch.
python_with()
{
    command -v python3 > /dev/null || return
    for p in python3 /usr/bin/python3; do
        $p -c "import sys; from importlib.util import find_spec
sys.exit(any(find_spec(m.split('.')[0]) is None for m in '$1'.split(',')))" 2> /dev/null && { echo $p; return; }
    done
}

# built SOURCE...: prints the objects that make has compiled of these sources of examples, or without make the sources
built()
{
    for source in "$@"; do
        if [ "$PARTS_FOLDER" ]; then echo $PARTS_FOLDER/$(basename $source .c).o; else echo $source; fi
    done
}

# three_classes ROWS: prints a table of random numbers in which a row's last number is its class, 0 to 2: that of the columns that are larger.
three_classes()
{
    awk -v rows=$1 'BEGIN { srand(2)
        for (i = 0; i < rows; i++) { c = i % 3; for (k = 0; k < 20; k++) printf "%.4f,", (k % 3 == c) + rand(); print c } }'
}

# cases GENERATOR FILE ARGUMENTS: random cases of tools/GENERATOR.py, by $onnx. With $CASES, a folder, what an earlier run with the
# same arguments made is taken from there.
cases()
{
    generator=$1 file=$2
    shift 2
    [ -n "$CASES" ] || { $onnx tools/$generator.py $file "$@"; return; }
    stored=$CASES/$(echo $generator "$@" | cksum | tr ' ' -)
    [ -e $stored ] || $onnx tools/$generator.py $stored "$@" || return
    cp $stored $file
}

# onnx_runtime: succeeds if node has ONNX Runtime: the package onnxruntime-node, in build/onnxruntime or in NODE_PATH.
onnx_runtime()
{
    NODE_PATH=${NODE_PATH:-$PWD/build/onnxruntime/node_modules}
    export NODE_PATH
    node -e 'require("onnxruntime-node")' 2> /dev/null
}
# torch_libraries: reports whether the libraries of the module for PyTorch compile without a warning, and names them to the module.
# make has compiled them once, into build/torch; without it they are compiled here.
torch_libraries()
{
    [ -n "$TORCH" ] || MAKEFLAGS= make -s torch > /dev/null
    for name in torch convert; do
        [ -e build/torch/liblgelu_$name.so ] && [ ! -s build/torch/liblgelu_$name.so.warnings ]
        verdict $? "liblgelu_$name.so compiles without a warning" "$(grep -m1 -E 'error|warning' build/torch/liblgelu_$name.so.warnings)"
    done
    LGELU_TORCH_LIBRARY=$PWD/build/torch/liblgelu_torch.so
    LGELU_CONVERT_LIBRARY=$PWD/build/torch/liblgelu_convert.so
    export LGELU_TORCH_LIBRARY LGELU_CONVERT_LIBRARY
}
# torch_zoo: succeeds if the networks of tools/onnx_zoo.py and tools/onnx_zoo_more.py are in build/torch_zoo, where make has exported them.
torch_zoo()
{
    [ "$MAKELEVEL" ] || sh tools/torch_zoo.sh
    [ -e build/torch_zoo/list ] || { echo "FAIL networks of PyTorch: $(tail -n 1 build/torch_zoo/log)"; false; }
}
no_onnx='not installed (Debian: python3-onnx)'
no_torch='not installed (Debian: python3-torch)'
no_mpmath='not installed (Debian: python3-mpmath)'
no_runtime='not installed (node, npm install --ignore-scripts onnxruntime-node)'
