# SPDX-License-Identifier: MIT-0
# fuzz.sh PROGRAM SECONDS: a fuzzer with the sanitizers that are here: libFuzzer where clang has it, for so many seconds, then its own
# rounds ($ROUNDS of them, if that is set). The implementation is compiled with the same sanitizers by then: build/fuzz_lgelu.*.o.
program=$1
seconds=$2
sanitizers='-fsanitize=address,undefined -fno-sanitize-recover=all'
flags="-std=c99 -O1 -g -I.. $sanitizers"
own=$(grep -q 'define LGELU_IMPLEMENTATION' "$program.c" && echo own)
library() { [ -z "$own" ] && [ -e "build/fuzz_lgelu.$1.o" ] && echo "build/fuzz_lgelu.$1.o"; }
if clang $flags -fsanitize=fuzzer -DFUZZ_LIBFUZZER "$program.c" $(library clang) -o "build/$program" -lm 2> /dev/null; then
    mkdir -p "build/$program.corpus"
    if "build/$program" -max_total_time="$seconds" -timeout=25 -print_final_stats=1 -artifact_prefix="build/$program." "build/$program.corpus" > "build/$program.out" 2>&1; then
        echo "ok $program: libFuzzer, $seconds s, $(sed -n 's/^stat::number_of_executed_units: *//p' "build/$program.out") inputs"
    else
        echo "FAIL $program: $(grep -m1 -E '^FAIL|ERROR|error:' "build/$program.out")"
        exit 1
    fi
else
    echo "skip $program with libFuzzer: no clang that has it here"
fi
if ! ${CC:-cc} $flags "$program.c" $(library cc) -o "build/$program" -lm 2> /dev/null; then
    if ! ${CC:-cc} -std=c99 -O1 -g -I.. "$program.c" $([ -z "$own" ] && echo tools/lgelu.c) -o "build/$program" -lm; then
        echo "FAIL $program: does not compile"
        exit 1
    fi
fi
timeout $((seconds + 3600)) "build/$program" $ROUNDS
