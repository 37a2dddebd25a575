# SPDX-License-Identifier: MIT-0
# test_snippets.sh: compiles and runs every ```c block of README.md and examples/README.md, and the ten lines at the top of lgelu.h.
#   a block with a main    is a program
#   the others             are fragments: those of one chapter (##) form one function, in their order, within the frame below;
#                          a part that begins with `static` in the first column, up to a `}` in that column, is put before the function
# A comment after a printf, or alone on the line below it, states what that printf prints, in both kinds.
out=build/snippets
. tools/job.sh
cat > $out/frame.h <<'C'
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define LGELU_TRAINER
#include "lgelu.h"
enum { BATCH = 128 };
float pixels[BATCH * 784], test_pixels[BATCH * 784];       /* all zeros: what is tested is that it compiles and runs */
int32_t classes[BATCH], tokens[BATCH * 64], next[BATCH * 64];
size_t samples = 100;
long step = 1, steps = 8;
const char *path = "network.safetensors";
C

# blocks FILE NAME: writes NAME_N.c for each block with a main, NAME_N.f for each heading with fragments, and prints these names
blocks()
{
    awk -v to="$out/$2" '
    /^##? / && !inside && !other { heading++ }
    /^```c$/ && !other { inside = 1; text = ""; next }
    /^```/ && inside {
        inside = 0
        if (text ~ /main\(/) { n++; file = to "_" n ".c"; printf "%s", text > file; close(file); print file; next }
        if (heading != last) { n++; last = heading; names[n] = to "_" n ".f" }
        printf "%s", text > names[n]
        if (!said[n]++) print names[n]
        next
    }
    /^```/ { other = !other }
    inside { text = text $0 "\n" }' "$1"
}
# a fragment file as a program
framed()
{
    awk '
    /^static / { hoisting = 1 }
    hoisting { top = top $0 "\n"; if (/}$/ && (/^}/ || /^static .*}$/)) hoisting = 0; next }
    { body = body $0 "\n" }
    END { printf "#include \"frame.h\"\n%sint main(void)\n{\n%sreturn 0;\n}\n", top, body }' "$1"
}
# what its comments state that it prints
stated()
{
    awk '
    function comment(text) { sub(/^ *(\/\*|\/\/) */, "", text); sub(/ *\*\/ *$/, "", text); sub(/ *$/, "", text); return text }
    below && /^ *(\/\*.*\*\/|\/\/.*)$/ { print comment($0) }
    { below = 0 }
    /printf\(.*; *$/ { below = 1 }
    /printf\(.*; *(\/\*.*\*\/|\/\/.*)$/ { text = $0; sub(/^.*; *\/\*/, "/*", text); sub(/^.*; *\/\//, "//", text); print comment(text) }' "$1"
}
# one WHERE FILE: compiled and run, and what it prints is compared with its comments; an object from tools/lgelu.c provides the implementation
one()
{
    stated $2 > $out/stated
    sed 's/^#define LGELU_IMPLEMENTATION.*//' $2 > $out/program.c
    log=$($CC -std=c99 -Wall -Wextra -Wpedantic -Werror -I.. -I../examples -I$out $out/program.c $IMPLEMENTATION -o $out/program -lm 2>&1)
    verdict $? "$1: compiles" "$(echo "$log" | grep -m1 -E 'error|warning')" | tee $out/verdict
    grep -q '^ok' $out/verdict || return
    (cd $out && timeout 60 ./program) > $out/printed 2>&1
    verdict $? "$1: runs" "$(tail -1 $out/printed)"
    [ ! -s $out/stated ] || verdict $(cmp $out/stated $out/printed > /dev/null 2>&1; echo $?) "$1: prints what it says" "$(cat $out/printed) in place of $(cat $out/stated)"
}

for document in README.md examples/README.md; do
    if [ ! -e ../$document ]; then echo "skip $document: not here"; continue; fi
    name=$(echo $document | tr '/.' '__')
    for block in $(blocks ../$document $name); do
        title="$document, $(echo "${block##*_}" | sed 's/\.c$/ (a program)/; s/\.f$/ (fragments)/')"
        case $block in *.f) framed $block > $block.c; block=$block.c;; esac
        one "$title" $block
    done
done
awk '/^   Ten lines to the first result/ { on = 1; next } on && /^       / { sub(/^       /, ""); print; if (/^}/) exit }' ../lgelu.h > $out/ten.c
sed 's/^#define LGELU_IMPLEMENTATION$/#define LGELU_TRAINER/' $out/ten.c > $out/ten_lines.c
one 'lgelu.h, the ten lines on top' $out/ten_lines.c
verdict $([ "$(grep -c . $out/stated)" = 2 ]; echo $?) "lgelu.h: both of its lines say what they print" "$(cat $out/stated)"
exit 0
