# SPDX-License-Identifier: MIT-0
# job.sh: the functions that the tests of the examples have in common. A test sets `out`, its folder, before it reads this file; the
# folder is created empty.
CC=${CC:-cc}
OMP_WAIT_POLICY=passive
export OMP_WAIT_POLICY
unset LGELU_DATA LGELU_ISA STOP_AT NAN_AT kept most code
rm -rf $out
mkdir -p $out || exit 1

. tools/verdict.sh

# declared FILE: writes FILE without its LGELU_IMPLEMENTATION and prints its path; the object that all tests share provides the code
IMPLEMENTATION=${IMPLEMENTATION:-tools/lgelu.c}
# the sources of the programs study and measure, or the objects that make compiles once
engines=$(printf '../examples/%s.c ' verify/bounds verify/pieces network/refit reluize/passes/least_squares common/interval common/output common/data)
STUDY=${STUDY:-$(echo ../examples/study/*.c) $engines ../examples/common/text.c}
MEASURE=${MEASURE:-$(echo ../examples/verify/measure/*.c) $engines $(printf '../examples/%s.c ' verify/attack verify/mip verify/vnnlib verify/solver int8/int8 reluize/ops/int8_product)}
declared() { sed 's/^#define LGELU_IMPLEMENTATION$//' "$1" > $out/$(basename "$1") && echo "-I../examples/tutorials $out/$(basename "$1")"; }

# clean PROGRAM NAME SOURCES AND FLAGS: compiles the program without a warning. The first source contains the implementation.
clean()
{
    program=$1
    name=$2
    shift 2
    log=$($CC -std=c99 $WARNINGS -Werror -fsyntax-only "$@" 2>&1) || { echo "FAIL $name: $(echo "$log" | grep -m1 error)"; return; }
    sources=$(declared "$1")
    shift
    log=$($CC -std=c99 -O2 $WARNINGS -Werror $sources "$@" $IMPLEMENTATION -o $program -lm 2>&1) && echo "ok $name" ||
        { echo "FAIL $name: $(echo "$log" | grep -m1 error)"; $CC -std=c99 -O2 $sources "$@" $IMPLEMENTATION -o $program -lm || exit 1; }
}

# stoppable PROGRAM SOURCES: compiles a variant of the program that stops by itself, as stopped_job.c describes.
stoppable()
{
    program=$1
    sources=$(declared "$2")
    shift 2
    $CC -std=c99 -O2 -D_POSIX_C_SOURCE=200809L tools/stopped_job.c $sources "$@" $IMPLEMENTATION -Wl,--wrap=lgelu_net_step -o $program -lm || exit 1
}

# refused WHAT COMMAND ARGUMENTS: one line on stderr with WHAT in it, nothing on stdout, status $code, or without it from 1 to $most; $kept as it was
refused()
{
    what=$1
    command=$2
    shift 2
    $command "$@" > $out/refused.out 2> $out/refused.err
    status=$?
    [ $status -ge "${code:-1}" ] && [ $status -le "${code:-${most:-1}}" ] && [ "$(wc -l < $out/refused.err)" -eq 1 ] && [ ! -s $out/refused.out ] && grep -q -e "$what" $out/refused.err &&
        { [ -z "$kept" ] || cmp $kept $kept.was > /dev/null 2>&1; }
    verdict $? "refuses $*" "status $status, $(cat $out/refused.err)"
}

# the functions that tools/faults.c replaces
wrap=$(echo malloc calloc realloc fopen fdopen open fclose close fflush fsync rename | sed 's/\([a-z]*\) */-Wl,--wrap=\1 /g')
# breakable PROGRAM SOURCES: compiles the program with tools/faults.c between it and its calls for memory and files.
breakable()
{
    program=$1
    shift
    [ -e $out/faults.o ] || $CC -std=gnu99 -O1 -c tools/faults.c -o $out/faults.o || exit 1
    $CC -std=c99 -O1 -w "$@" $IMPLEMENTATION $out/faults.o $wrap -o $out/$program -lm || exit 1
}

# chain STEPS BEGIN RESUME: stops the command BEGIN after its first step, then RESUME after one more, and so on to the end.
chain()
{
    export STOP_AT=1
    $2 > $out/chain.out 2> $out/chain.err
    status=$?
    stops=0
    while [ $status = 130 ] && [ $stops -lt $(($1 + 20)) ]; do
        stops=$((stops + 1))
        grep -q -e "--resume $out/chain.st" $out/chain.err || break
        $3 > $out/chain.out 2> $out/chain.err
        status=$?
    done
    unset STOP_AT
    [ $status = 0 ] && [ $stops = $1 ]
    verdict $? "${4}stopped and resumed after each of $1 steps" "status $status after $stops stops, $(cat $out/chain.err)"
}

# study [NAME]: compiles or links examples/study as $out/study; with NAME, the variant that stops, under that name.
study()
{
    if [ "$1" ]; then $CC -std=c99 -O1 tools/stopped_job.c $STUDY $IMPLEMENTATION -Wl,--wrap=lgelu_net_step -o $out/$1 -lm || exit 1; return; fi
    log=$($CC -std=c99 -O1 $WARNINGS -Werror $STUDY $IMPLEMENTATION -o $out/study -lm 2>&1 &&
        for part in $STUDY; do [ ! -s "$part.warnings" ] || { cat "$part.warnings"; exit 1; }; done) && echo "ok compiles without a warning" ||
        { echo "FAIL compiles without a warning: $(echo "$log" | grep -m1 -E 'error|warning')"; [ -x $out/study ] || $CC -std=c99 -O1 $STUDY $IMPLEMENTATION -o $out/study -lm || exit 1; }
}

# tiny FOLDER [SIDE]: writes 300 and 60 images of 6 x 6, or of SIDE x SIDE, as files of the MNIST family.
tiny()
{
    mkdir -p $1
    side=${2:-6}
    digits='\000\001\002\003\004\005\006\007\010\011'
    corner=$(printf '\\000\\000\\000\\%03o' $side $side)
    for part in 'train 0 300 \000\000\001\054' 't10k 1 60 \000\000\000\074'; do
        set -- $1 $part
        bytes=$(($4 * side * side))
        { printf '\000\000\010\003'"$5$corner"
          head -c $((bytes + 5000)) ../examples/pictures/train_$3.png | tail -c $bytes; } > $1/$2-images-idx3-ubyte
        { printf '\000\000\010\001'"$5"; i=0; while [ $i -lt $4 ]; do printf "$digits"; i=$((i + 10)); done; } > $1/$2-labels-idx1-ubyte
    done
}
