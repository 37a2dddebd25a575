# SPDX-License-Identifier: MIT-0
# test_web.sh: tests examples/web, the header as WebAssembly and its page: the page's small libc, the module in node and the page in
# headless Chromium beside a program that computes the same here, and all hashes. Debian: clang, lld, nodejs, wasi-libc,
# libclang-rt-dev-wasm32, chromium, chromium-driver. The screenshots of the page are in build/web.
CC=${CC:-cc}
out=build/web
rm -rf $out
mkdir -p $out || exit 1
. tools/verdict.sh
has() { command -v "$1" > /dev/null; }

for f in fma ldexp frexp memcpy memset memcmp memchr strlen strcmp strchr; do names="$names -D$f=web_$f"; done
$CC -std=c99 -O2 $WARNINGS -fno-builtin $names -c ../examples/web/libc/libc.c -o $out/libc.o &&
    $CC -std=c99 -O2 $WARNINGS tools/web_libc.c $out/libc.o -o $out/libc -lm || { echo "FAIL the page's libc compiles"; exit 1; }
$out/libc || bad=1

if ! has clang || ! has wasm-ld; then echo "skip the page: not installed (Debian: clang, lld)"; exit $bad; fi
# make has built the page already, or tried to: build/page.out is what was printed
MAKEFLAGS= make -s -C ../examples web BUILD=../tests/build/page > $out/make.log 2>&1 && cat build/page.out >> $out/make.log && [ ! -s $out/make.log ]
verdict $? "make web builds the page without a warning" "$(head -n 1 $out/make.log)"
built=build/page/web
bytes=$(wc -c < $built/index.html)
verdict $([ "$bytes" -lt 1000000 ]; echo $?) "the page is smaller than 1 MB" "$bytes bytes"
# the name of SVG's elements is no address, and a link loads nothing before it is followed
sed -e 's|http://www.w3.org/2000/svg||' -e 's|<a id="repository" href="[^"]*"||' $built/index.html | grep -oE '.{20}(https?:|@import|url\()' > $out/loads
verdict $([ ! -s $out/loads ]; echo $?) "it loads nothing else" "$(head -n 1 $out/loads)"
if ! has node; then echo "skip the module and the page beside what is computed here: not installed (Debian: nodejs)"; exit $bad; fi
$CC -std=c99 -O1 $WARNINGS tools/web_native.c -o $out/native -lm || { echo "FAIL the native program compiles"; exit 1; }
node tools/web.js module $built/web.wasm $out/native || bad=1
# the header with wasi-libc, in node: whatever is hashed anywhere, without and with SIMD128
dir=$out
. tools/processors.sh
target wasm
if [ "$(able $compile)" ]; then echo "skip the bits of all parts in WebAssembly: not installed (Debian: wasi-libc, libclang-rt-dev-wasm32)"
else
    $CC -std=c99 -O1 -I.. -I. kernels/test_fma.c -o $out/fma -lm && $out/fma hash > $out/fma.here || { echo "FAIL test_fma compiles"; bad=1; }
    for set in '' -simd128; do
        name="WebAssembly${set:+ with $set}"
        short=$([ "$set" ] || echo --short)
        target wasm$set
        $compile -O1 -I.. -I. kernels/test_same_bits.c -o $out/bits$set.wasm > $out/bits.log 2>&1 &&
            $runner $out/bits$set.wasm $short hashes.txt > $out/bits.out 2>> $out/bits.log
        verdict $? "$name: test_same_bits ${short:+in its short form }has the hashes of hashes.txt" "$(grep -m 1 FAIL $out/bits.out || head -n 1 $out/bits.log)"
        $compile -O2 -I.. -I. kernels/test_fma.c -o $out/fma$set.wasm > $out/fma.log 2>&1 &&
            $runner $out/fma$set.wasm hash > $out/fma.there && cmp -s $out/fma.here $out/fma.there
        verdict $? "$name: a·b + c, rounded once, has the bits it has here" "$(head -n 1 $out/fma.log)"
    done
fi
if ! has chromium || ! has chromedriver; then echo "skip the page in a browser: not installed (Debian: chromium, chromium-driver)"; exit $bad; fi
node tools/web.js page $built/index.html $out/native $out || bad=1
exit $bad
