# SPDX-License-Identifier: MIT-0
# test_plan_steps.sh: the steps that planning, making and copying a network take grow at most like the square of its nodes, and without
# the sorting and placing of buffers not even like that (see tools/plan_steps.c). They are counted, so that no clock decides.
# HEADER=folder: of the lgelu.h in another folder.
dir=build/plan_steps
cc=${CC:-cc}
mkdir -p $dir
trace=-fsanitize-coverage=trace-pc
if ! echo 'int x;' | $cc $trace -x c -c - -o $dir/probe.o 2> /dev/null; then echo "skip steps of a plan: no $trace here"; exit 0; fi
header=${HEADER:-..}
# build NAME FOLDER: plan_steps with the lgelu.h of a folder
build() {
    $cc -std=c99 -O0 -w -DLGELU_NO_SIMD $trace -DLGELU_TRAINER -DLGELU_IMPLEMENTATION -I$2 -x c -c $2/lgelu.h -o $dir/$1.o &&
        $cc $dir/plan_steps.o $dir/$1.o -lm -pthread -o $dir/$1
}
mkdir -p $dir/changed
sed 's/return lgelu__place_buffers(net);/return 64;/' $header/lgelu.h > $dir/changed/lgelu.h
$cc -std=c99 -O1 -I$header -c tools/plan_steps.c -o $dir/plan_steps.o && build placed $header && build unplaced $dir/changed ||
    { echo "FAIL steps of a plan: the program does not compile"; exit 0; }
$dir/placed
$dir/unplaced unplaced
