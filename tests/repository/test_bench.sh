# SPDX-License-Identifier: MIT-0
# test_bench.sh: every benchmark that needs nothing but a C compiler compiles and links without a warning. None
# runs. What they contain of the examples has been compiled for the tests.
. tools/verdict.sh
dir=$PWD/build/bench
rm -rf "$dir"
for part in ../examples/*/*.c ../examples/reluize/*/*.c; do
    folder=$dir/parts/$(dirname "${part#../examples/}")
    object=$PWD/$PARTS_FOLDER/$(basename "$part" .c).o
    [ -n "$PARTS_FOLDER" ] && [ -e "$object" ] || continue
    mkdir -p "$folder"
    cp "$object" "$folder"
done
# programs: what `make -C bench programs` makes, by name
programs() { MAKEFLAGS='' make -s -C ../bench -pn programs B="$dir" | sed -n 's/^programs: //p;s/^all: //p' | tr ' ' '\n' | sed -n "s|^$dir/||p" | sort -u; }
for program in $(programs); do
    MAKEFLAGS='' make -s -C ../bench "$dir/$program" B="$dir" CFLAGS=-O0 WARN='-Wall -Wextra -Werror' > "$dir.log" 2>&1
    verdict $? "bench: $program compiles" "$(grep -m1 -E 'error|undefined|No rule' "$dir.log")"
done
