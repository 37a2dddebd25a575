# SPDX-License-Identifier: MIT-0
# test_web.sh: examples/web, the header as WebAssembly and its page: the page's small libc, the module in node and the page in
# headless Chromium beside a program that computes the same here. Debian: clang, lld, node, chromium, chromium-driver. The
# pictures of the page are in build/web.
CC=${CC:-cc}
out=build/web
rm -rf $out
mkdir -p $out || exit 1
bad=0
verdict() { if [ "$1" = 0 ]; then echo "ok $2"; else echo "FAIL $2: $3"; bad=1; fi; }
has() { command -v "$1" > /dev/null; }

for f in fma ldexp frexp memcpy memset memcmp memchr strlen strcmp strchr; do names="$names -D$f=web_$f"; done
$CC -std=c99 -O2 $WARNINGS -fno-builtin $names -c ../examples/web/libc/libc.c -o $out/libc.o &&
    $CC -std=c99 -O2 $WARNINGS tools/web_libc.c $out/libc.o -o $out/libc -lm || { echo "FAIL the page's libc compiles"; exit 1; }
$out/libc || bad=1

if ! has clang || ! has wasm-ld; then echo "skip the page: not installed (Debian: clang, lld)"; exit $bad; fi
make -s -C ../examples web > $out/make.log 2>&1 && [ ! -s $out/make.log ]
verdict $? "make web builds the page without a warning" "$(head -n 1 $out/make.log)"
built=../examples/build/web
bytes=$(wc -c < $built/index.html)
verdict $([ "$bytes" -lt 200000 ]; echo $?) "the page is smaller than 200 KB" "$bytes bytes"
verdict $(! grep -qE 'https?://|@import|url\(' $built/index.html; echo $?) "it asks for nothing else" "$(grep -oE '.{20}(https?:|@import|url\()' $built/index.html | head -n 1)"
if ! has node; then echo "skip the module and the page beside what is computed here: not installed (Debian: nodejs)"; exit $bad; fi
$CC -std=c99 -O1 $WARNINGS tools/web_native.c -o $out/native -lm || { echo "FAIL the native program compiles"; exit 1; }
node tools/web.js module $built/web.wasm $out/native || bad=1
if ! has chromium || ! has chromedriver; then echo "skip the page in a browser: not installed (Debian: chromium, chromium-driver)"; exit $bad; fi
node tools/web.js page $built/index.html $out/native $out || bad=1
exit $bad
