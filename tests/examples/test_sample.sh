# SPDX-License-Identifier: MIT-0
# test_sample.sh: the sample network of README and the page. Training it again gives the bytes of the file; README's command converts it
# and prints README's report; README's picture is drawn from that report.
out=build/sample
rm -rf $out
mkdir -p $out || exit 1
. tools/verdict.sh

MAKEFLAGS= make -s -C ../examples BUILD=../tests/$out ../tests/$out/sample ../tests/$out/reluize > $out/make.log 2>&1 && [ ! -s $out/make.log ]
verdict $? "the programs compile without a warning" "$(head -n 1 $out/make.log)"

(cd ../examples && ../tests/$out/sample network ../tests/$out/cnn_silu.onnx) > $out/training 2>&1 && cmp $out/cnn_silu.onnx ../examples/sample/cnn_silu.onnx > $out/log 2>&1
verdict $? "the network is trained again with the bytes that it has" "$(tail -n 1 $out/training) $(cat $out/log)"
bytes=$(wc -c < ../examples/sample/cnn_silu.onnx)
verdict $([ "$bytes" -lt 300000 ]; echo $?) "it has less than 300 KB" "$bytes"

# OpenMP's idle threads sleep, as the variable says that the program sets for itself
waits=$(env -u OMP_WAIT_POLICY OMP_DISPLAY_ENV=true $out/reluize --help 2>&1 | grep OMP_WAIT_POLICY | tail -n 1)
case $waits in
'') echo "skip idle threads of reluize sleep: no OpenMP here" ;;
*) verdict $(echo "$waits" | grep -q PASSIVE; echo $?) "idle threads of reluize sleep" "$waits" ;;
esac

# README's command, as it is there, and the block that follows it
command=$(grep -m 1 '^examples/build/reluize examples/sample' ../README.md)
verdict $([ "$command" ]; echo $?) "README converts the sample network" "no such command"
command=$(echo "$command" | sed "s|^examples/build/reluize|tests/$out/reluize|; s| -o [^ ]*| -o tests/$out/relu.onnx|; s|\$| --quiet --report tests/$out/relu.json|")
(cd .. && time -p $command) > $out/report 2> $out/log
verdict $? "README's command converts it" "$(head -n 1 $out/log)"
mv $out/relu.onnx $out/relu.native.onnx
seconds=$(awk '/^real/ { print int($2) }' $out/log)
verdict $([ "${seconds:-999}" -lt 120 ]; echo $?) "within two minutes" "$seconds s"
awk '/^examples\/build\/reluize examples\/sample/ { after = 1 } after && /^```/ { n++; next } n == 2 { print } n == 3 { exit }' ../README.md > $out/shown
other=$(grep -v -x -F -f $out/report $out/shown)
verdict $([ "$(grep -c . $out/shown)" -ge 4 ] && [ -z "$other" ]; echo $?) "README shows the report that it prints" "$(echo "$other" | head -n 1)"

if command -v python3 > /dev/null; then
    sed 's|"model": "[^"]*"|"model": "examples/sample/cnn_silu.onnx"|' $out/relu.json > $out/figure.json
    python3 ../examples/sample/figure.py $out/figure.json $out/figure.svg && cmp $out/figure.svg ../examples/figures/reluize_sample_accuracy.svg > $out/log 2>&1
    verdict $? "README's picture is drawn from that report" "$(cat $out/log)"
else echo "skip README's picture: no python3 here"; fi
# Windows: the same command, compiled by MinGW and run by Wine
dir=$out
. tools/processors.sh
target mingw
export WINEPREFIX=$PWD/$out/wine
why=$(able $compile)
[ -z "$why" ] && [ ! -d /usr/include/stb ] && why='no headers of stb here'
if [ "$why" ]; then echo "skip reluize on Windows: $why (Debian: gcc-mingw-w64-x86-64, wine64)"
else
    mkdir -p $out/include $out/mingw && ln -s /usr/include/stb $out/include/stb
    MAKEFLAGS= make -s -C ../examples BUILD=../tests/$out/mingw CC="${compile% -std=*} -I$PWD/$out/include" OPENMP= ../tests/$out/mingw/reluize > $out/make.log 2>&1
    verdict $? "MinGW compiles reluize" "$(grep -m 1 error $out/make.log)"
    (cd .. && $runner tests/$out/mingw/reluize.exe ${command#tests/$out/reluize}) > $out/report.windows 2> $out/log
    cmp $out/relu.onnx $out/relu.native.onnx > $out/difference 2>&1
    verdict $? "reluize on Windows writes the same bytes" "$(tail -n 1 $out/log) $(cat $out/difference)"
    unwine
fi
# the control: another report, another picture
sed 's/97\.08/97.09/' $out/shown > $out/changed
verdict $([ "$(grep -v -x -F -c -f $out/report $out/changed)" = 1 ]; echo $?) "a changed figure is found" "it is not"
exit $bad
