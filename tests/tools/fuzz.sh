# SPDX-License-Identifier: MIT-0
# fuzz.sh PROGRAM SECONDS: a fuzzer with the sanitizers that are here: libFuzzer where clang has it, else its own rounds of damage.
program=$1
seconds=$2
flags='-std=c99 -O1 -g -I.. -fsanitize=address,undefined -fno-sanitize-recover=all'
# a program without the implementation in it links it as an object without sanitizers, which make it slow to compile
library=
if grep -q 'include "lgelu.h"' "$program.c" && ! grep -q 'define LGELU_IMPLEMENTATION' "$program.c"; then
    library=build/fuzz_lgelu.o
    ${CC:-cc} -std=c99 -O2 -c tools/lgelu.c -o $library || exit 1
fi
if clang $flags -fsanitize=fuzzer -DFUZZ_LIBFUZZER "$program.c" $library -o "build/$program" -lm 2> /dev/null; then
    mkdir -p "build/$program.corpus"
    if "build/$program" -max_total_time="$seconds" -timeout=25 -print_final_stats=1 -artifact_prefix="build/$program." "build/$program.corpus" > "build/$program.out" 2>&1; then
        echo "ok $program: libFuzzer, $seconds s, $(sed -n 's/^stat::number_of_executed_units: *//p' "build/$program.out") inputs"
    else
        echo "FAIL $program: $(grep -m1 -E 'ERROR|error:' "build/$program.out")"
        exit 1
    fi
else
    echo "skip $program with libFuzzer: no clang that has it here"
fi
if ! ${CC:-cc} $flags "$program.c" $library -o "build/$program" -lm 2> /dev/null &&
   ! ${CC:-cc} -std=c99 -O1 -g -I.. "$program.c" $library -o "build/$program" -lm; then
    echo "FAIL $program: does not compile"
    exit 1
fi
timeout $((seconds + 600)) "build/$program"
