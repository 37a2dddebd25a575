# SPDX-License-Identifier: MIT-0
# test_sanitized.sh: runs the vector kernels (AVX2 and AVX-512, if the processor has them) under gcc's address and undefined sanitizers.
# The implementation is build/fuzz_lgelu.cc.o, with LGELU_CHECK: the bytes behind each region of a network's block are poisoned while a
# layer runs. Each family of kernels has a program, which runs in its short form. Then the guards are checked without a sanitizer, where a
# pattern in the same bytes replaces the poison, and in a copy of the header whose workspace is planned too small, which must be reported.
: "${CC:=cc}"
dir=build/sanitized
mkdir -p $dir
. tools/verdict.sh
sanitized='-std=c99 -O1 -fsanitize=address,undefined -fno-sanitize-recover=all'
echo 'int main(void) { return 0; }' > $dir/none.c

# program NAME SOURCES: builds a program and runs it in its short form. The first report of a sanitizer is the reason of a failure.
program()
{
    name=$1
    shift
    if ! $CC $flags -I.. -I. */$name.c "$@" -o $dir/$name -lm -pthread > $dir/$name.log 2>&1; then
        verdict 1 "$what, $name" "it does not compile: $(head -n 1 $dir/$name.log)"
        return
    fi
    $dir/$name --short > $dir/$name.log 2>&1
    status=$?
    cases=$(grep -c '^ok' $dir/$name.log)
    verdict $([ $status = 0 ] && [ "$cases" -gt 0 ]; echo $?) "$what, $name: $cases cases" \
        "status $status, $(grep -m 1 -E 'runtime error|ERROR|FAIL' $dir/$name.log)"
}

# ---- sanitizers ----
object=build/fuzz_lgelu.cc.o
[ "$MAKELEVEL" ] || make -s $object
what='address and undefined sanitizers'
flags=$sanitized
if ! $CC $flags $dir/none.c -o $dir/none 2> /dev/null || ! $dir/none; then
    echo "skip $what: the compiler has none that run here"
elif [ ! -e $object ]; then verdict 1 "$what" "the header does not compile: $(head -n 1 $object.err)"
else
    program test_partial $object
    program test_gemm $object
    program test_half $object
    program test_optimiser $object
    flags="$sanitized -DLINKED"
    program test_kernels $object
    # the poison itself: a custom gate that writes past its value is reported at that write
    $CC $sanitized -I.. tools/planted_write.c $object -o $dir/planted_write -lm > $dir/planted.log 2>&1
    $dir/planted_write > $dir/planted.log 2>&1
    verdict $(grep -q 'use-after-poison' $dir/planted.log; echo $?) "$what: a planted write past a value is reported" \
        "$(tail -n 1 $dir/planted.log)"
fi

# ---- guards without a sanitizer, and a plan that is too small ----
what='guards'
# The guards are those of the network, the same with every kernel, so that the scalar kernels suffice here.
flags='-std=c99 -O1 -DLGELU_NO_SIMD'
$CC $flags -DLGELU_CHECK -c tools/lgelu.c -o $dir/checked.o
program test_partial $dir/checked.o
mkdir -p $dir/small/tests/tools
sed 's|return most \* sizeof(float) + LGELU__GUARD;|return most * sizeof(float) / 8 + LGELU__GUARD;|' ../lgelu.h > $dir/small/lgelu.h
cp tools/lgelu.c $dir/small/tests/tools
verdict $(cmp -s ../lgelu.h $dir/small/lgelu.h; [ $? = 1 ]; echo $?) "a plan that is too small is planted" "the line is another one now"
# It crashes at once, so that an optimiser would only take time.
flags='-std=c99 -O0 -DLGELU_NO_SIMD'
$CC $flags -DLGELU_CHECK -c $dir/small/tests/tools/lgelu.c -o $dir/small.o
$CC $flags -I.. -I. trainer/test_partial.c $dir/small.o -o $dir/small_partial -lm -pthread
$dir/small_partial --short > $dir/small.log 2>&1
verdict $(grep -q "^FAIL .*: its .* wrote past .*workspace" $dir/small.log; echo $?) "a workspace that is planned too small is found, with layer and region" \
    "$(grep -m 1 -E 'FAIL|^ok' $dir/small.log)"
