# SPDX-License-Identifier: MIT-0
# test_places.sh: whoever adds a kind of gate, a family of kernels or a kind of layer learns here what is still missing, in one line each:
# from the compiler where a table or a switch requires it, and from this test where a file has a list of its own. The places are those
# of the checklists in lgelu.h, in sections [8c] and [8d].
. tools/verdict.sh
LC_ALL=C
export LC_ALL
dir=build/places
rm -rf $dir
mkdir -p $dir
cc=${CC:-cc}

# missing LINE...: reports what is missing
missing()
{
    echo "FAIL $*"
    bad=1
}

# ---- what the compiler requires ----
# compiles FILE OPTION...: reports each message of the compiler about a file in a line. Those about lgelu.h come from inside its macros:
# a name counts once, wherever it is used.
compiles()
{
    $cc -std=c99 -Wall -Wextra -I. "$@" 2>&1 | sed -nE 's/^([^ ]*:[0-9]+):[0-9]+: ([a-z]* )?(error|warning): /\1: /p' |
        sed -E 's/^[^ ]*lgelu\.h:[0-9]+:/lgelu.h:/; s/ (\(first use|here \(not).*/ /; s/; did you mean.*//; s/(lgelu__order_of_)[A-Z0-9_]*/\1.../' |
        sort -u > $dir/messages
    [ -s $dir/messages ] || { echo "ok the compiler misses nothing in $1"; return; }
    while read -r message; do missing "$message"; done < $dir/messages
}
compiles tools/lgelu.c -O0 -DLGELU_NO_SIMD -c -o $dir/lgelu.o
for file in trainer/test_network.c fuzz/fuzz_network.c ../examples/network/onnx_out.c; do compiles $file -fsyntax-only; done

# ---- the tables, as the preprocessor expands them ----
cat > $dir/tables.c << 'END'
#define LGELU_TRAINER
#define LGELU_DEF public
#include "lgelu.h"
#define GATE(kind, file, name, family, lambda, traits) gate kind family;
LGELU_GATES(GATE)
#define LAYER(kind, name, traits) layer kind traits;
LGELU_LAYERS(LAYER)
#define CLAIM(kernel, ulp, units) claim kernel;
END
claims=$(sed -n 's/^#define \(LGELU_[A-Z0-9_]*CLAIMS[A-Z0-9_]*\)(X).*/\1/p' ../lgelu.h)
for name in $claims; do echo "$name(CLAIM)"; done >> $dir/tables.c
$cc -E -P $dir/tables.c | tr '\n' ' ' | tr ';' '\n' | sed 's/^ *//' > $dir/tables
gates=$(sed -n 's/^gate \([A-Z0-9_]*\) .*/\1/p' $dir/tables)
families=$(sed -n 's/^gate [A-Z0-9_]* \([a-z0-9_]*\) *$/\1/p' $dir/tables | grep -vxE 'phi|custom' | sort -u)
layers=$(sed -n 's/^layer \([A-Z0-9_]*\) .*/\1/p' $dir/tables)
# has_trait KIND TRAIT: whether a kind of layer has it
has_trait() { grep -q "^layer $1 .*LGELU_TRAIT_$2\>" $dir/tables; }
public=$(sed -n 's/.*\<public [^(]*\<\(lgelu_[a-z0-9_]*\)(.*/\1/p' $dir/tables)
verdict $([ $(echo $gates | wc -w) -gt 5 ] && [ $(echo $families | wc -w) -gt 2 ] && [ $(echo $layers | wc -w) -gt 25 ] &&
    [ $(echo $public | wc -w) -gt 150 ]; echo $?) "the tables and the public functions are found" "$(wc -l < $dir/tables) lines"

# ---- public functions ----
# In C a function that nobody calls may be declared and have no body.
if [ -e $dir/lgelu.o ]; then
    nm $dir/lgelu.o | awk '$2 == "T" { print $3 }' > $dir/bodies
    for name in $public; do grep -qx $name $dir/bodies || missing "$name is declared in lgelu.h and has no body"; done
else
    missing "lgelu.h does not compile, so that its functions are not looked for"
fi

# calls FILE NAME...: reports which of these names a file does not call
calls()
{
    file=$1
    shift
    lacks=
    for name in "$@"; do grep -q "\<$name(" $file || lacks="$lacks $name"; done
    [ -z "$lacks" ] || missing "$file does not call$lacks"
}

# ---- gates ----
calls kernels/sweep.c $claims
for gate in $gates; do
    # A custom gate has no operator of a file.
    [ $gate = CUSTOM ] || grep -qw LGELU_GATE_$gate tools/onnx_nets.c tools/nets.h || missing "tools/onnx_nets.c has no network with LGELU_GATE_$gate"
done
for family in $families; do
    for kernel in forward dx; do grep -q "^claim ${family}_$kernel *$" $dir/tables || missing "lgelu.h has no claim for ${family}_$kernel"; done
    both="lgelu_${family}_forward lgelu_${family}_backward"
    for file in flushing exceptions inside same_bits rounding; do calls kernels/test_$file.c $both; done
    # special values, neighbours, edges
    others=$(ls kernels/test_*.c | grep -vE 'flushing|exceptions|inside|same_bits|rounding')
    for name in $both; do grep -qw $name $others || missing "no test of special values calls $name"; done
done

# ---- layers ----
# KIND and builder of each row of fuzz_network's list, which has a row for every kind
awk '/^#define LIST_OF_BUILDERS/ { inside = 1 } inside && /clang-format on/ { exit } inside' fuzz/fuzz_network.c | tr -d '\\\n' |
    sed 's/ X(/\
X(/g' | sed -n 's/^X([A-Z0-9_]*, *\([A-Z0-9_]*\), .*\<\(lgelu_[a-z0-9_]*\)(net.*/\1 \2/p' | grep -v lgelu_net_ > $dir/builders
# A builder that has a row is called only where a program of calls is drawn, by the name of its row.
sed '/^#define LIST_OF_BUILDERS/,/clang-format on/d' fuzz/fuzz_network.c > $dir/fuzz_network.c
for builder in $(sed -n '/^#define LIST_OF_BUILDERS/,/clang-format on/s/^    X(\([A-Z0-9_]*\),.*/\1/p' fuzz/fuzz_network.c); do
    grep -qw "$builder" $dir/fuzz_network.c || missing "fuzz/fuzz_network.c draws no call of its builder $builder"
done
# the kinds that only whole networks bring into some of these tests
cat >> $dir/builders << 'END'
EMBEDDING lgelu_gpt
POSITION lgelu_gpt
LAYER_NORM lgelu_gpt
RMS_NORM lgelu_gpt
DROPOUT lgelu_gpt
PATCHES lgelu_vit
CLASS_TOKEN lgelu_vit
MEAN_TOKENS lgelu_vit
END
# lists_layer KIND FILE...: reports whether one of these files builds a layer of a kind
lists_layer()
{
    of=$1
    shift
    builders=$(sed -n "s/^$of \(.*\)/\\\\<\1\\\\>/p" $dir/builders | tr '\n' '|' | sed 's/|$//')
    grep -qE "$builders" "$@" && return
    missing "no layer of kind $of in $*"
}
for kind in $layers; do
    grep -q "^$kind " $dir/builders || { missing "fuzz/fuzz_network.c has no builder of $kind"; continue; }
    lists_layer $kind trainer/test_network.c trainer/test_cnn.c trainer/test_transformer.c
    lists_layer $kind trainer/test_partial.c
    # Views and custom losses compute nothing.
    [ $kind = VIEW ] || [ $kind = CUSTOM_LOSS ] || lists_layer $kind kernels/test_same_bits.c
    # A file has neither labels nor losses.
    [ $kind = LABELS ] || has_trait $kind LOSS || lists_layer $kind tools/onnx_nets.c
    # Of the layers that compute token by token a view joins tokens.
    ! has_trait $kind TOKENWISE || [ $kind = VIEW ] || lists_layer $kind trainer/test_generate.c
done
[ $bad = 0 ] && echo "ok every list has every kind of gate, family of kernels and kind of layer"
