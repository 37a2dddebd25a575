# SPDX-License-Identifier: MIT-0
# test_corpus.sh: the seeds in corpus/ are what the writers of this repository write now. Each fuzzer of readers makes a short run
# over its seeds, the files of its corpus and some damaged copies, under address and undefined sanitizers if the compiler has them.
# test_corpus.sh record writes the seeds.
. tools/verdict.sh
out=build/corpus
CC=${CC:-cc}
IMPLEMENTATION=${IMPLEMENTATION:-tools/lgelu.c}
rm -rf $out
mkdir -p $out/objects
# Each file is compiled once, without optimisation: the runs are short.
flags='-std=c99 -O0 -g -I..'
echo 'int main(void) { return 0; }' > $out/none.c
sanitizers='-fsanitize=address,undefined -fno-sanitize-recover=all'
$CC $flags $sanitizers $out/none.c -o $out/none 2> /dev/null && $out/none && flags="$flags $sanitizers"
for source in fuzz/*.c; do
    grep -q 'tools/fuzz.h' $source || continue
    program=$out/$(basename $source .c)
    objects=
    for file in $(sh tools/fuzz.sh sources $source); do
        object=$out/objects/$(basename $file .c).o
        [ -e $object ] || $CC $flags -c $file -o $object || echo "FAIL $file: does not compile"
        objects="$objects $object"
    done
    $CC $flags $source $objects $IMPLEMENTATION -o $program -lm || { echo "FAIL ${source%.c}: does not compile"; continue; }
    if [ "$1" = record ]; then $program --seeds corpus; continue; fi
    for reader in $($program --list); do
        case $reader in sheet) rounds=20 ;; onnx|text|pairs|picture|checkpoint|folder) rounds=150 ;; *) rounds=400 ;; esac
        READER=$reader $program $rounds || echo "FAIL $reader: ended with status $?"
    done
    $program --seeds $out/seeds || echo "FAIL ${source%.c}: writes no seeds"
done
[ "$1" = record ] && exit
for folder in $out/seeds/*; do
    bad=$(for file in $folder/*; do cmp $file corpus/${file#$out/seeds/} 2>&1; done)
    [ -z "$bad" ] && echo "ok the seeds of ${folder##*/}" || echo \
        "FAIL the seeds of ${folder##*/}: $(echo "$bad" | head -n 1); make corpus writes them"
done
for folder in corpus/*/; do
    [ -d $out/seeds/$(basename $folder) ] || echo "FAIL corpus: no fuzzer reads $folder"
done
bytes=$(find corpus -type f -exec cat {} + | wc -c)
[ $bytes -lt 200000 ] && echo "ok the corpus has $bytes bytes" || echo "FAIL the corpus: $bytes bytes"
