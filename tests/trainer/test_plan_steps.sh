# SPDX-License-Identifier: MIT-0
# test_plan_steps.sh: the steps that planning, making and copying a network take do not grow like the square of its nodes (see
# tools/plan_steps.c). They are counted, so that no clock decides. HEADER=folder: of the lgelu.h in another folder.
dir=build/plan_steps
cc=${CC:-cc}
mkdir -p $dir
trace=-fsanitize-coverage=trace-pc
if ! echo 'int x;' | $cc $trace -x c -c - -o $dir/probe.o 2> /dev/null; then echo "skip steps of a plan: no $trace here"; exit 0; fi
header=${HEADER:-..}
printf '#define LGELU_TRAINER\n#define LGELU_IMPLEMENTATION\n#include "lgelu.h"\n' > $dir/lgelu.c
$cc -std=c99 -O0 -w -DLGELU_NO_SIMD $trace -I$header -c $dir/lgelu.c -o $dir/lgelu.o &&
    $cc -std=c99 -O1 -I$header -c tools/plan_steps.c -o $dir/plan_steps.o &&
    $cc $dir/plan_steps.o $dir/lgelu.o -lm -pthread -o $dir/plan_steps || { echo "FAIL steps of a plan: the program does not compile"; exit 0; }
$dir/plan_steps
