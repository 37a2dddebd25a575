# SPDX-License-Identifier: MIT-0
# test_sizes.sh: a program that calls one gate links that one, for each instruction set, in at most the bytes that lgelu.h states under
# VENDORING, and computes the same bits with and without the kernels for AVX-512.
: "${CC:=cc}"
dir=build/sizes
rm -rf $dir
mkdir -p $dir
. tools/verdict.sh

# linked CALL: by the linker, which removes unused sections; alone CALL: by the compiler, which drops unused static functions
linked() { one "$1" '' $dir/kernels.o -ffunction-sections -fdata-sections -Wl,--gc-sections; }
alone() { one "$1" "$option"'#define LGELU_STATIC\n#define LGELU_IMPLEMENTATION\n'; }
one()
{
    call=$1
    printf "$2"'#include "lgelu.h"\nfloat x[4]; int main(void) { %s return 0; }\n' "$call" > $dir/one.c
    shift 2
    $CC -std=c99 -O2 $march -w -I.. $dir/one.c "$@" -o $dir/one -lm && size $dir/one | awk 'NR == 2 { print $1 + $2 }'
}
# clang makes larger code, so that its bounds are higher by a third
more=$($CC -dM -E -x c /dev/null | grep -q __clang__ && echo 1333 || echo 1000)
# The most bytes of a call, static and linked: with everything; without AVX-512; for AVX2 alone.
bounds='20480 24500 17500 20480 11900 14000 lgelu_forward(x, x, 1, 4);
35000 38500 29000 31500 20480 23000 lgelu_backward(x, x, x, 1, 4);
10000 13500 8000 10500 5000 7100 lgelu_tanh_forward(x, x, 4);
14500 18500 11500 14500 7000 9500 lgelu_tanh_backward(x, x, x, 4);
11500 16500 9500 13000 6200 9000 lgelu_silu_forward(x, x, 1, 4);
23000 26500 18500 20480 14000 16000 lgelu_silu_backward(x, x, x, 1, 4);'
# sizes OPTION COLUMN: holds each call to the bounds in this column and the next; $march: the processor
march=
sizes()
{
    option=$1
    printf "$option"'#define LGELU_IMPLEMENTATION\n#include "lgelu.h"\n' > $dir/kernels.c
    none=$(alone '' 2> /dev/null)
    none_linked=
    if $CC -std=c99 -O2 $march -ffunction-sections -fdata-sections -I.. -c $dir/kernels.c -o $dir/kernels.o 2> /dev/null; then
        none_linked=$(linked '' 2> /dev/null)
    fi
    while read -r most most_linked call; do
        what=${call%%(*}${march:+, $march}${option:+, ${option#\#define }}
        what=${what%\\n}
        # What a call drags in, it drags in for every instruction set: the largest one suffices for the others.
        case $2-$call in 1-*|*lgelu_backward*) is_alone=$none ;; *) is_alone= ;; esac
        if [ -n "$is_alone" ]; then
            bytes=$(($(alone "$call") - none))
            verdict $([ "$bytes" -gt 0 ] && [ "$bytes" -le $((most * more / 1000)) ]; echo $?) "$what, static: at most $most bytes" "$bytes"
        fi
        if [ -n "$none_linked" ]; then
            bytes=$(($(linked "$call") - none_linked))
            verdict $([ "$bytes" -gt 0 ] && [ "$bytes" -le $((most_linked * more / 1000)) ]; echo $?) "$what, linked: at most $most_linked bytes" "$bytes"
        fi
    done << END_CALLS
$(echo "$bounds" | cut -d ' ' -f $2,$(($2 + 1)),7-)
END_CALLS
}
# The same program with and without the kernels for AVX-512 computes the same bits: linked to the object that `sizes` made last.
cat > $dir/bits.c << 'END_C'
#include "lgelu.h"
#include <stdio.h>
#include <string.h>
static float x[3000], y[3000], z[3000];
int main(void)
{
    uint64_t hash = 1;
    double sum = 0;
    int i;
    for (i = 0; i < 3000; i++)
        x[i] = 4 * lgelu_normal(1, 2, (uint64_t)i);
    lgelu_forward(y, x, 1.5f, 3000);
    sum += lgelu_backward(z, y, x, 1.5f, 2999);
    lgelu_silu_forward(y, z, 1.702f, 3000);
    sum += lgelu_silu_backward(z, y, x, 1.702f, 2999);
    for (i = 0; i < 3000; i++) {
        uint32_t a, b;
        memcpy(&a, y + i, 4);
        memcpy(&b, z + i, 4);
        hash = (hash ^ a ^ (uint64_t)b << 32) * 0x100000001B3u;
    }
    printf("%016llx %a\n%s\n", (unsigned long long)hash, sum, lgelu_isa_name(lgelu_isa()));
    return 0;
}
END_C
bits() { $CC -std=c99 -O2 -I.. $dir/bits.c $(ls $dir/kernels.o 2> /dev/null || echo $dir/kernels.c) -o $dir/bits -lm && $dir/bits; }
sizes '' 1
all=$(bits)
sizes '#define LGELU_NO_AVX512\n' 3
fewer=$(bits)
if $CC -march=x86-64-v3 -fsyntax-only -x c /dev/null 2> /dev/null; then
    march=-march=x86-64-v3
    sizes '#define LGELU_NO_AVX512\n' 5
    march=
fi
[ -n "$none_linked" ] || echo "skip what one gate links: this linker removes no sections"
verdict $([ -n "$all" ] && [ "${all%%
*}" = "${fewer%%
*}" ]; echo $?) "LGELU_NO_AVX512: the same bits" "$all $fewer"
case $fewer in *avx512) false ;; *) true ;; esac
verdict $? "LGELU_NO_AVX512: no kernel for AVX-512 runs" "$fewer"
exit $bad
