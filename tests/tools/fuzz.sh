# SPDX-License-Identifier: MIT-0
# fuzz.sh PROGRAM SECONDS: runs a fuzzer with the sanitizers that are installed: libFuzzer, if clang has it, for SECONDS (for a fuzzer
# of readers: of processor time for each reader, and until it has run $FUZZ_RUNS inputs), then the program's own rounds ($ROUNDS of them,
# if that is set). READER=npy selects one reader. The implementation is already compiled with the same sanitizers: build/fuzz_lgelu.*.o,
# and for the readers, without vector kernels, build/fuzz_scalar.*.o.
# Networks also run with traps on overflow and under valgrind. With BRIEF=1, which CI sets, only the program's own rounds run; gcc's build of
# them looks for overflow as well.
# fuzz.sh table LOG...: prints what each reader ran, from these logs.
# fuzz.sh sources FILE: prints what is compiled with a fuzzer: of a program of several files those that it neither includes nor replaces.
. tools/verdict.sh
if [ "$1" = sources ]; then
    if [ "$2" = fuzz/fuzz_onnx_run.c ]; then
        for source in ../examples/reluize/onnx/onnx_graph.c ../examples/reluize/ops/*.c; do
            [ $source = ../examples/reluize/app/onnx_run_main.c ] || echo $source
        done
        exit
    fi
    [ "$2" = fuzz/fuzz_study.c ] || exit 0
    for source in ../examples/study/*.c ../examples/common/interval.c ../examples/verify/bounds.c ../examples/verify/pieces.c ../examples/network/refit.c ../examples/reluize/passes/least_squares.c ../examples/common/data.c ../examples/common/text.c; do
        grep -q "#include \"$(basename $source)\"" "$2" || echo $source
    done
    exit
fi
if [ "$1" = table ]; then
    shift
    awk '
    /^(ok|FAIL) fuzz / {
        who = $3; sub(/:$/, "", who)
        if (!(who in runs)) name[++n] = who
        runs[who] += 0
        if ($1 == "FAIL") crashes[who]++
        for (i = 4; i < NF; i++) {
            if ($(i + 1) ~ /^(executions|inputs)/) runs[who] += $i
            if ($(i + 1) ~ /^s,?$/) seconds[who] += $i
            if ($(i + 1) == "new") paths[who] += $i
        }
    }
    END {
        if (n) printf "%-12s %12s %10s %10s %8s\n", "reader", "executions", "CPU s", "new paths", "crashes"
        for (i = 1; i <= n; i++) {
            k = name[i]
            printf "%-12s %12d %10.0f %10d %8d\n", k, runs[k], seconds[k], paths[k], crashes[k]
        }
    }' "$@"
    exit
fi
program=$1
seconds=$2
sanitizers='-fsanitize=address,undefined -fno-sanitize-recover=all'
flags="-std=c99 -O1 -g -I.. $sanitizers"
sources=$(sh tools/fuzz.sh sources "fuzz/$program.c")
grep -q 'tools/fuzz.h' "fuzz/$program.c" && readers=yes
needs=$(grep -q '"lgelu.h"' "fuzz/$program.c" && echo ${readers:+fuzz_scalar} | sed 's/^$/fuzz_lgelu/')
library() { [ "$needs" ] && [ -e "build/$needs.$1.o" ] && echo "build/$needs.$1.o"; }
if ! ${CC:-cc} $flags "fuzz/$program.c" $sources $(library cc) -o "build/$program.own" -lm 2> /dev/null; then
    if ! ${CC:-cc} -std=c99 -O1 -g -I.. "fuzz/$program.c" $sources $([ "$needs" ] && echo tools/lgelu.c) -o "build/$program.own" -lm; then
        echo "FAIL $program: does not compile"
        exit 1
    fi
fi
[ "$readers" ] && names=$("build/$program.own" --list) || names=$program
if [ "$READER" ]; then
    names=$(echo "$names" | grep -x "$READER")
    [ "$names" ] || { echo "skip $program: has no reader $READER"; exit 0; }
fi
failed=0
if [ "$BRIEF" ]; then echo '# without libFuzzer, since BRIEF is set'
elif clang $flags -fsanitize-ignorelist=tools/fuzz_ignored.txt -fsanitize=fuzzer -DFUZZ_LIBFUZZER "fuzz/$program.c" $sources $(library clang) \
    -o "build/$program" -lm 2> /dev/null; then
    for name in $names; do
        new=build/fuzz.$name
        out=build/$program.$name.out
        mkdir -p "$new"
        had=$(ls "$new" | wc -l)
        if [ "$readers" ]; then
            READER=$name FUZZ_CPU=$seconds FUZZ_RUNS=${FUZZ_RUNS:-0} "build/$program" -max_len=65536 -timeout=25 \
                -artifact_prefix="build/$program.$name." "$new" $(ls -d "corpus/$name" 2> /dev/null) > "$out" 2>&1
        else
            # A network with a batch of 1,500 may take long under sanitizers on a busy machine.
            "build/$program" -max_total_time="$seconds" -timeout=300 -print_final_stats=1 \
                -artifact_prefix="build/$program." "$new" > "$out" 2>&1
        fi
        status=$?
        what="fuzz ${name#fuzz_}: libFuzzer"
        ran=$(sed -n -e 's/^fuzz: \([0-9]*\) runs, .*, \([0-9]*\) s$/\1 executions, \2 s/p' \
            -e 's/^stat::number_of_executed_units: *\(.*\)/\1 executions, '"$seconds"' s/p' "$out")
        if [ $status = 0 ]; then echo "ok $what $ran, $(($(ls "$new" | wc -l) - had)) new paths"
        else echo "FAIL $what $(grep -m1 -E '^FAIL|ERROR|error:' "$out"); see $out"; failed=1; fi
    done
else
    echo "skip $program with libFuzzer: no clang that has it here"
fi
own=build/$program.own.out
timeout $((seconds + 3600)) "build/$program.own" $ROUNDS > $own 2>&1
status=$?
cat $own
if [ $status != 0 ]; then
    failed=1
    # A program that a sanitizer ends prints no line of its own.
    grep -q '^FAIL' $own || echo "FAIL $program: status $status, $(grep -m1 -E 'ERROR|error:' $own)"
fi

# The random networks once more, in builds that no sanitizer's own memory changes: what overflows, shifts too far or converts a float
# out of range ends the program (-ftrapv and gcc's traps), and valgrind reports what is decided by a byte that nobody has written, since
# the twins' blocks come from malloc. Valgrind runs the scalar kernels, and those for AVX2 only if its fma returns the zeros of the
# processor's: tools/valgrind_fma.c shows which sign is wrong, and with it a twin's zero weight has the other sign.
# again WHAT RUNS FLAGS...: builds and runs it, behind the command $under.
again()
{
    what="fuzz network: $1"
    runs=$2
    shift 2
    if ! ${CC:-cc} -std=c99 -O1 -g -I.. "$@" "fuzz/$program.c" tools/lgelu.c -o "build/$program.again" -lm 2> /dev/null; then
        echo "skip $what: the compiler does not build it here"
        return
    fi
    $under "build/$program.again" "$runs" > "build/$program.again.out" 2>&1
    status=$?
    if [ $status = 0 ]; then echo "ok $what, $(sed -n 's/^ok fuzz_network: //p' "build/$program.again.out")"
    else echo "FAIL $what: status $status, $(grep -m1 -E '^FAIL|^==.*(uninit|Invalid)' "build/$program.again.out"); see build/$program.again.out"; failed=1; fi
}
if [ "$program" = fuzz_network ] && [ -z "$BRIEF" ]; then
    under=
    again 'traps on overflow' 1000 -ftrapv -fsanitize=undefined,float-cast-overflow,bounds-strict -fsanitize-undefined-trap-on-error
    if command -v valgrind > /dev/null; then
        under='valgrind -q --error-exitcode=9'
        again 'valgrind' 60 -DLGELU_NO_SIMD
        zeros=build/valgrind_fma
        if ! ${CC:-cc} -std=c99 -O1 tools/valgrind_fma.c -o $zeros; then echo "FAIL fuzz network: valgrind_fma.c does not compile"; failed=1
        elif $zeros > $zeros.out; then
            echo "ok fuzz network: the zeros of the processor's fma: $(cat $zeros.out)"
            if $under $zeros > $zeros.out 2>&1; then again 'valgrind with AVX2' 60 -DLGELU_NO_AVX512
            else echo "skip fuzz network: valgrind with AVX2: its fma returns other zeros than the processor's: $(cat $zeros.out)"; fi
        elif [ $? = 2 ]; then echo "skip fuzz network: valgrind with AVX2: no fma here"
        else echo "FAIL fuzz network: the zeros of the processor's fma: $(cat $zeros.out)"; failed=1
        fi
    else
        echo 'skip fuzz network: valgrind: it is not installed'
    fi
fi
exit $failed
