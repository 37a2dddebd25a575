# SPDX-License-Identifier: MIT-0
# test_layers.sh: includes in examples/reluize point down only: app to passes, these to ops, these to onnx, and every folder to common.
# The program also includes what converts networks of lgelu.h.
. tools/verdict.sh
out=build/layers
rm -rf $out
mkdir -p $out

# allowed FOLDER: prints the folders whose headers a file of this folder may include
allowed()
{
    case $1 in
    reluize/onnx) echo "$1 common" ;;
    reluize/ops) echo "$1 reluize/onnx common int8" ;;
    reluize/passes) echo "$1 reluize/ops reluize/onnx common" ;;
    reluize/app) echo "$1 reluize/passes reluize/ops reluize/onnx common network verify int8" ;;
    esac
}

# upward EXAMPLES: prints the includes of files of a folder below that are in no allowed one
upward()
{
    for folder in reluize/onnx reluize/ops reluize/passes reluize/app; do
        for file in "$1/$folder"/*.[ch]; do
            for header in $(sed -n 's/^#include "\(.*\)".*/\1/p' "$file"); do
                [ "$header" != lgelu.h ] || continue
                found=
                for below in $(allowed $folder); do [ ! -e "$1/$below/$header" ] || found=yes; done
                [ "$found" ] || echo "$folder/$(basename "$file") includes $header"
            done
        done
    done
}
others=$(upward ../examples)
verdict $([ -z "$others" ]; echo $?) "includes point down" "$(echo $others | head -c 300)"
cp -R ../examples/common ../examples/reluize $out
mkdir -p $out/network $out/verify $out/int8
cp ../examples/network/*.h $out/network
cp ../examples/verify/*.h $out/verify
cp ../examples/int8/*.h $out/int8
sed -i 's/^#include "onnx_graph.h"/&\n#include "onnx_run.h"/' $out/reluize/onnx/onnx_graph.c
[ "$(upward $out)" = "reluize/onnx/onnx_graph.c includes onnx_run.h" ]
verdict $? "an include that points up is found" "$(upward $out)"
exit $bad
