# SPDX-License-Identifier: MIT-0
# test_web_convert.sh: the page of examples/web converts ONNX files in a worker: three networks in headless Chromium, each with the
# bytes that reluize writes here; no request leaves the tab; keys, names, Cancel, what is refused. Debian: clang, lld, wasi-libc,
# libclang-rt-dev-wasm32, nodejs, chromium, chromium-driver. The screenshots are in build/web_convert.
CC=${CC:-cc}
out=build/web_convert
rm -rf $out
mkdir -p $out || exit 1
. tools/verdict.sh
has() { command -v "$1" > /dev/null; }

if ! has clang || ! has wasm-ld || ! has node; then echo "skip the page that converts: not installed (Debian: clang, lld, nodejs)"; exit 0; fi
dir=$out
. tools/processors.sh
target wasm
if [ "$(able $compile)" ]; then echo "skip the page that converts: not installed (Debian: wasi-libc, libclang-rt-dev-wasm32)"; exit 0; fi
# make has built the page already, as test_web.sh says
MAKEFLAGS= make -s -C ../examples web BUILD=../tests/build/page > $out/make.log 2>&1 && cat build/page.out >> $out/make.log && [ ! -s $out/make.log ]
verdict $? "make web builds the page without a warning" "$(head -n 1 $out/make.log)"
page=build/page/web/index.html
[ -f $page ] || exit 1
# what the page cannot set, a message may name; anything else is worded by advice() of convert.c
options=$(LC_ALL=C grep -a -o -e '[[:print:]]*--[a-z][[:print:]]*' build/page/web/convert.wasm |
    grep -v -e '--vocabulary is for' -e '--kept %ld:' -e '--mean and --std are for' -e '--standard is for' -e '--data %' -e '--output %' -e ': --output names another one' -e '--size %zu,%zu:' \
        -e 'give --size ROWS,COLUMNS' -e '--class-axis %ld:' -e '--class-axis 0:' -e 'alone (--output)')
verdict $([ -z "$options" ]; echo $?) "messages name what the page has" "$options"
IMPLEMENTATION=${IMPLEMENTATION:-tools/lgelu.c}
$CC -std=c99 -O1 $WARNINGS tools/web_nets.c ../examples/reluize/onnx/npy.c $IMPLEMENTATION -lm -o $out/nets && $out/nets $out && $out/nets $out big ||
    { echo "FAIL the networks are made"; exit 1; }
RELUIZE=${RELUIZE:-$(ls ../examples/reluize/*/*.c \
    ../examples/common/output.c ../examples/common/data.c | grep -v -e onnx_run_main -e onnx_c_main -e onnx_program)}
$CC -std=c99 -O1 $WARNINGS $RELUIZE $IMPLEMENTATION -lm -o $out/reluize || { echo "FAIL reluize compiles"; exit 1; }
if ! has chromium || ! has chromedriver; then echo "skip the page in a browser: not installed (Debian: chromium, chromium-driver)"; exit $bad; fi
node tools/web_convert.js $page $out/reluize $out ../examples/sample/cnn_silu.onnx || bad=1
rm -f $out/big.onnx
exit $bad
