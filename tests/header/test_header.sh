# SPDX-License-Identifier: MIT-0
# test_header.sh: how lgelu.h reads, and what compilers say to programs that include it. The tokens
# of the MAP are the banners; lines, functions and parameter lists are short; each public function
# has a comment that begins with a verb; examples use no private field. No test program warns, nor
# does a source of the page in examples/web, nor a program that binds an array before it fills it.
: "${CC:=cc}"
: "${WARNINGS:=-Wall -Wextra -Wpedantic -Wshadow -Wundef -Wconversion -Wsign-conversion -Wcast-qual -Wdouble-promotion}"
dir=build/header
rm -rf $dir
mkdir -p $dir
. tools/verdict.sh

# ---- lines: columns are counted in characters, of which a byte 80 to BF begins none ----
wide=$(LC_ALL=C awk '{ line = $0; gsub(/[\200-\277]/, "", line) }
                     length(line) > 100 { print FNR }' ../lgelu.h | tr '\n' ' ')
verdict $([ -z "$wide" ]; echo $?) "no line of more than 100 columns" "lines $wide"
wide=$(printf '%0100d\n%0101d\n%099dλ\n%0100dλ\n' 0 0 0 0 | LC_ALL=C awk '
    { line = $0; gsub(/[\200-\277]/, "", line) } length(line) > 100 { printf "%d ", FNR }')
verdict $([ "$wide" = "2 4 " ]; echo $?) "a line of 101 columns is seen" "$wide"
trailing=$(grep -nE '[ 	]$' ../lgelu.h | cut -d: -f1 | tr '\n' ' ')
verdict $([ -z "$trailing" ]; echo $?) "no blanks at a line's end" "lines $trailing"

# ---- functions: `lines parameters name` of each definition, from its first line to its brace ----
cat > $dir/functions.awk <<'END_AWK'
/^(static|LGELU_DEF|LGELU__FN|LGELU__APART|LGELU__WORD) / && /\(/ { first = FNR; head = ""; inside = 1; body = 0 }
inside && !body {
    head = head " " $0
    if ($0 ~ /^\{/ || $0 ~ /^    \{.*\}$/ || $0 ~ /\)[ ]*\{/) body = 1
    else if ($0 ~ /;[ ]*(\/\*.*)?$/) inside = 0
}
inside && body && (/^}/ || /}$/ && (FNR == first || /^    \{/)) {
    sub(/\{.*/, "", head)
    gsub(/\/\*[^*]*\*\//, "", head)
    if (sub(/LGELU__FN\(/, "lgelu__", head)) sub(/\)\(/, "(", head)
    name = head
    sub(/\(.*$/, "", name)
    sub(/^.*[ *]/, "", name)
    sub(/^[^(]*\(/, "", head)
    depth = 0
    parameters = 1
    for (i = 1; i <= length(head); i++) {
        c = substr(head, i, 1)
        depth += (c == "(") - (c == ")")
        parameters += c == "," && depth == 0
    }
    print FNR - first + 1, parameters, name, first
    inside = 0
}
END_AWK
awk -f $dir/functions.awk ../lgelu.h > $dir/functions
functions=$(wc -l < $dir/functions)
verdict $([ "$functions" -gt 300 ]; echo $?) "the functions are found" "$functions"
# One inlined step of a kernel keeps all of its registers in a single function.
long=$(awk '$1 > ($3 == "lgelu__slope_pair" ? 80 : 70) { print $3 " has " $1 " lines;" }' \
    $dir/functions | tr '\n' ' ')
verdict $([ -z "$long" ]; echo $?) "no function over 70 lines" "$long"
many=$(awk '$2 > 8 && ($3 ~ /^lgelu__/ || $3 !~ /^lgelu_/) { print $3 " takes " $2 ";" }' \
    $dir/functions | tr '\n' ' ')
verdict $([ -z "$many" ]; echo $?) "no private function over 8 parameters" "$many"
# A function of 71 lines and 9 parameters is found.
{
    echo 'static int lgelu__long(int a, int b, int (*c)(int, int), int d, int e, int f, int g,'
    echo '                       int h, int i)'
    echo '{'
    yes '    a++;' | head -n 67
    echo '}'
} > $dir/long.h
found=$(awk -f $dir/functions.awk $dir/long.h)
verdict $([ "$found" = "71 9 lgelu__long 1" ]; echo $?) "a long function is seen" "$found"

# ---- comments: those above public functions in [1] begin with a verb ----
# Prints the number of public functions, then those without one. A comment belongs to all of the
# declarations that follow it without a blank line. For a single function the verb ends in s
# ("Computes"); for several it may be their plural ("Compute").
cat > $dir/verbs.awk <<'END_AWK'
function judge(  i)
{
    ok = verb ~ /^[A-Z][a-z]+s$/ && verb !~ /^(This|Its|As|Thus|Always|Whether)$/
    if (count > 1 && verb ~ /^(Compute|Return|Convert|Round|Set|Copy|Read|Write)$/) ok = 1
    for (i = 1; i <= count && !ok; i++) bad = bad " " name[i]
    count = 0
}
/^\/\* ==== \[1\]/ { on = 1 }
/^\/\* ==== \[2\]/ { on = 0 }
!on { next }
/^\/\*/ { judge(); verb = $2; comment = 1 }
comment { if (/\*\//) comment = 0; next }
/^$/ { judge(); verb = ""; next }
/^LGELU_DEF/ {
    all++
    name[++count] = $0
    sub(/\(.*/, "", name[count])
    sub(/.*[ *]/, "", name[count])
}
END { judge(); print all bad }
END_AWK
verbs=$(awk -f $dir/verbs.awk ../lgelu.h)
verdict $([ "${verbs%% *}" -gt 100 ] && [ "${verbs#* }" = "$verbs" ]; echo $?) \
    "each public function has a comment that begins with a verb" "$verbs"
cat > $dir/verbs.h <<'END_C'
/* ==== [1] DECLARATIONS ==== */
/* Computes y. */
LGELU_DEF void lgelu_good(float *y);
LGELU_DEF void lgelu_none(void);

LGELU_DEF void lgelu_apart(void);

/* The result of x. */
LGELU_DEF int lgelu_noun(int x);

/* Compute two things. */
LGELU_DEF int lgelu_first(int x);
LGELU_DEF int lgelu_second(int x,
                           int y);

/* Compute one thing. */
LGELU_DEF int lgelu_plural(int x);
/* ==== [2] PLATFORM ==== */
END_C
verbs=$(awk -f $dir/verbs.awk $dir/verbs.h)
verdict $([ "$verbs" = "7 lgelu_apart lgelu_noun lgelu_plural" ]; echo $?) \
    "a function without such a comment is seen" "$verbs"

# ---- instruction sets: kernels ask for a capability, which is stated once, not for a name ----
compared=$(grep -cE '^#(el)?if LGELU__PASS == LGELU__PASS_' ../lgelu.h)
others=$(grep -nE 'LGELU__PASS *(==|!=|<|>)' ../lgelu.h \
    | grep -vE '#(el)?if LGELU__PASS == LGELU__PASS_[A-Z0-9]+$' | cut -d: -f1 | tr '\n' ' ')
verdict $([ "$compared" -eq 11 ] && [ -z "$others" ]; echo $?) \
    "an instruction set is named only with its capabilities and its operations" \
    "$compared comparisons, others in lines $others"
mkdir -p $dir/renamed
cp ../lgelu.h $dir/renamed/my_lgelu.h
echo '#define LGELU_SELF "my_lgelu.h"
#define LGELU_IMPLEMENTATION
#include "my_lgelu.h"
int main(void) { float x = 1; lgelu_forward(&x, &x, 1, 1); return !(x > 0.84f && x < 0.85f); }' > $dir/renamed/main.c
found=$($CC -std=c99 -O0 -I$dir/renamed $dir/renamed/main.c -o $dir/renamed/main -lm 2>&1 && $dir/renamed/main)
verdict $? "a renamed header compiles with LGELU_SELF" "$found"

# ---- the MAP: its tokens are the banners, in order, each once ----
sed -n '/^   MAP/,/^   PROMISES/p' ../lgelu.h | grep -oE '\[[0-9K][a-z]?\]' | sort > $dir/map
awk '/^   PROMISES/ { on = 1 } on && /^\/\* (====|----) \[/ { print $3 }' ../lgelu.h | sort > $dir/banners
verdict $(cmp -s $dir/map $dir/banners; echo $?) "the MAP's tokens are the banners" "$(diff $dir/map $dir/banners | grep '^[<>]' | tr '\n' ' ')"

# ---- private fields: they are in `internal`; others compile against a header that has no such ----
mkdir -p $dir/examples $dir/bench
sed 's/^    } internal;/    } hidden;/' ../lgelu.h > $dir/lgelu.h
verdict $([ "$(grep -c '^    } hidden;' $dir/lgelu.h)" -eq 3 ]; echo $?) \
    "lgelu_node, lgelu_net and lgelu_tensor have private fields in \`internal\`" "not three such structures"
cp -R ../examples/* $dir/examples
cp ../bench/*.[ch] $dir/bench
found=
for f in $(cd .. && ls examples/tutorials/[1-4]*.c examples/common/data.c examples/study/*.c examples/reluize/*/*.c examples/network/*.c \
    examples/verify/*.c examples/int8/*.c bench/step.c bench/resnet.c bench/gpt.c); do
    sed 's/^#define LGELU_IMPLEMENTATION$//' ../$f > $dir/$f
    found="$found$($CC -std=c99 -I$dir $(include_flags $dir/examples) -fsyntax-only $dir/$f 2>&1 | grep 'has no member')"
done
verdict $([ -z "$found" ]; echo $?) "examples and benchmarks use no private field" "$found"
echo '#include "lgelu.h"
size_t f(const lgelu_net *net);
size_t f(const lgelu_net *net) { return net->internal.known; }' > $dir/bad.c
$CC -std=c99 -DLGELU_TRAINER -I$dir -fsyntax-only $dir/bad.c 2>&1 | grep -q 'no member'
verdict $? "the use of a private field is seen" "it compiles"

# ---- files that the header names ----
# unknown_files HEADER: the paths in it at which no file is
unknown_files() { for path in $(grep -oE '(tests|examples|bench)/[A-Za-z_0-9/-]+\.[a-z]+' $1 | sort -u); do [ -e ../$path ] || echo $path; done; }
found=$(unknown_files ../lgelu.h)
verdict $([ -z "$found" ]; echo $?) "the files that lgelu.h names exist" "$(echo $found)"
echo '/* see examples/network/nowhere.h */' > $dir/bad.h
[ "$(unknown_files $dir/bad.h)" = examples/network/nowhere.h ]
verdict $? "a path without a file is seen" "it is not"

# ---- the page of examples/web: its own sources, read as sources of this machine; test_web compiles all of them to WebAssembly ----
# page EXAMPLES: what the compiler says of them. It does not know the attributes for exports.
page() { for source in $1/web/*.c; do $CC -std=c99 $WARNINGS -Wno-attributes $(include_flags $1) -fsyntax-only "$source" 2>&1; done; }
found=$(page ../examples)
verdict $([ -z "$found" ]; echo $?) "the page's sources compile without a warning" "$(echo "$found" | grep -m1 -E 'error|warning')"
sed -i 's/ way\[/ renamed[/' $dir/examples/reluize/app/reluize.h
page $dir/examples | grep -q 'web/convert.c:.*no member named'
verdict $? "a field of reluize.h that the page reads under another name is seen" "it compiles"

# ---- callers: an array may be filled after it was bound ----
cat > $dir/bind.c <<'END_C'
#define LGELU_TRAINER
#include "lgelu.h"
#include <stdlib.h>
static lgelu_net net;
static lgelu_node nodes[2];
int main(void)
{
    int x, y, bad;
    float *a, *w;
    void *block;
    size_t bytes;
    lgelu_net_begin(&net, nodes, 2);
    x = lgelu_input(&net, "x", 1, 1, 2);
    y = lgelu_linear(&net, "y", x, 1);
    bytes = lgelu_net_bytes(&net, 1, LGELU_MODE_INFER);
    block = malloc(bytes);
    a = (float *)malloc(2 * sizeof *a);
    if (!block || !a || lgelu_net_make(&net, block, bytes, 1, LGELU_MODE_INFER, 1))
        return 2;
    if (lgelu_net_bind(&net, x, a))
        return 2;
    w = lgelu_net_weights(&net, y);
    a[0] = 3;
    a[1] = 5;
    w[0] = 7;
    w[1] = 11;
    bad = lgelu_net_forward(&net, 1) != LGELU_OK || *lgelu_net_value(&net, y) != 76;
    free(a);
    free(block);
    return bad;
}
END_C
for language in 'gcc -x c -std=c99' 'g++ -x c++ -std=c++11' 'clang -x c -std=c99' 'clang++ -x c++ -std=c++11'; do
    if ! command -v "${language%% *}" > /dev/null; then echo "skip bound before it is filled, $language: not here"; continue; fi
    found=$($language -O2 $WARNINGS -Werror -I.. -c $dir/bind.c -o $dir/bind.o 2>&1)
    verdict $? "bound before it is filled, $language: no warning" "$(echo "$found" | grep -m1 -E 'error|warning')"
done
found=$($CC -std=c99 -O2 -I.. $dir/bind.c ${IMPLEMENTATION:-tools/lgelu.c} -o $dir/bind -lm -pthread 2>&1 && $dir/bind)
verdict $? "bound before it is filled: the forward reads what came later" "$found"

# ---- the functions of tools/mutants.txt, so that no row outlives what it describes ----
# gone FILE: those that lgelu.h does not have
gone() { sed -n 's/^\([a-z_0-9]*\):.*/\1/p' "$1" | sort -u | while read -r name; do grep -q -w -e "$name" ../lgelu.h || echo "$name"; done; }
found=$(gone tools/mutants.txt)
verdict $([ -z "$found" ]; echo $?) "tools/mutants.txt: each function is in lgelu.h" "$found"
printf 'lgelu__nothing_such: ... x\tno such function\n' > $dir/mutants.txt
verdict $([ "$(gone $dir/mutants.txt)" = lgelu__nothing_such ]; echo $?) "a function that is gone is found" "it is not"

# ---- flags that change bits: refused where the compiler shows them ----
for flag in -ffast-math -fno-signed-zeros -fsingle-precision-constant; do
    if ! command -v gcc > /dev/null; then echo "skip $flag is refused: no gcc here"; continue; fi
    verdict $(! gcc -std=c99 $flag -Wfatal-errors -fsyntax-only tools/lgelu.c 2> /dev/null; echo $?) "$flag is refused" "it compiles"
done
verdict $($CC -std=c99 -fsyntax-only tools/lgelu.c 2> /dev/null; echo $?) "without such flags it compiles" "it does not"

# ---- test programs, by the compiler that make does not compile them with (log.sh reports the warnings of that one); those with the
# implementation in them are compiled by test_interface ----
if $CC -dM -E -x c /dev/null | grep -q __clang__; then other=gcc; else other=clang; fi
if command -v $other > /dev/null; then
    found=$(grep -L 'define LGELU_IMPLEMENTATION' */test_*.c | xargs -n 1 $other -std=c99 $WARNINGS -Werror -I.. -I. -fsyntax-only 2>&1)
    verdict $? "no test program warns, $other" "$(echo "$found" | grep -m1 -E 'error|warning')"
    found=$(for file in ../examples/reluize/*/*.c ../examples/network/*.c ../examples/int8/*.c ../examples/verify/*.c; do
        $other -std=c99 $WARNINGS -fsyntax-only $file 2>&1; done)
    verdict $([ -z "$found" ]; echo $?) "no source of the examples warns, $other" "$(echo "$found" | grep -m1 -E 'error|warning')"
else echo "skip no test program warns, $other: not here"; fi
exit $bad
