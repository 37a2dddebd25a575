# SPDX-License-Identifier: MIT-0
# test_contraction.sh: looks for products that a compiler contracts with the sum that they enter: one fma has one rounding less, so that
# results would depend on the compiler (gcc contracts unless -std=c99 or -ffp-contract=off is given). The header, int8.c, refit.c and
# the parts of the study that train are compiled with and without contraction; a function that then differs in its number of fma
# instructions fails unless it is listed here with a reason.
. tools/verdict.sh
out=${OUT:-build/contraction}
rm -rf $out
mkdir -p $out
tab=$(printf '\t')
cat > $out/listed <<'END'
lgelu__narrow	it multiplies by 2^149: the product is exact
lgelu__backward_extreme	lgelu__narrow, inlined
lgelu__forward_extreme	the same
lgelu__sigmoid_far	the same
lgelu__sigmoid_far_backward	the same
lgelu__square_sum_*	squares of floats are exact in double
lgelu__middle_pair_scalar	products of floats are exact in double
lgelu__slope_middle_scalar	the same
lgelu__v_fma_scalar	the same
lgelu__first_range	twice a float is exact
lgelu_spearman	ranks are whole numbers, and their sums exact
lgelu__run	the work of a run, which decides how many threads it uses
lgelu__run_with	the same
lgelu__sweep_over	the same
int8_finish	int8_multiplier multiplies by 2^31: the product is exact
int8_multiplier	the same
int8_run_batch	the work of a run, which decides how many threads it uses
make_plan	a fraction of the steps plus 1/2, truncated: the same whole number with one rounding less
links_step	twice a number is exact
same_sincos	four times a whole number is exact
END

# counts FILE: the functions of assembler code and their numbers of fma instructions
counts()
{
    awk '/^[A-Za-z_][A-Za-z0-9_.]*:/ { name = $1; sub(/:.*/, "", name); gsub(/\.(constprop|isra|part|cold)(\.[0-9]+)?/, "", name) }
         $1 ~ /^(vfn?m(add|sub)[0-9a-z]*|fn?m(add|sub)|fml[as])$/ { n[name]++ }
         END { for (k in n) print k "\t" n[k] }' $1 | sort
}

# contracted SOURCE COMPILER FLAGS: the functions with other numbers if the compiler may contract, and not listed
contracted()
{
    source=$1
    shift
    for how in off fast; do
        "$@" -std=c99 -w $(include_flags ../examples) -I.. -ffp-contract=$how -S $source -o $out/$how.s || return
        counts $out/$how.s > $out/$how
    done
    join -t "$tab" -a 1 -a 2 -e 0 -o 0,1.2,2.2 $out/off $out/fast | awk -F '\t' -v listed=$out/listed '
        BEGIN { while ((getline row < listed) > 0) { split(row, part, "\t"); sub(/\*/, ".*", part[1]); like["^" part[1] "$"] } }
        $2 != $3 { for (l in like) if ($1 ~ l) next; printf "%s: %d fma, %d if contracted; ", $1, $2, $3 }'
}

# those on which the numbers of a run of the study depend
study=$(printf ' ../examples/study/%s.c' train ppo environments elementary gates_other)
printf '#define LGELU_TRAINER\n#define LGELU_IMPLEMENTATION\n#include "lgelu.h"\n' > $out/header.c
printf 'float planted(float a, float b, float c);\nfloat planted(float a, float b, float c) { return a * b + c; }\n' > $out/planted.c
# These options of -O2 contract and inline; the others only take time. Of the header by clang the bits are compared, with contraction
# allowed (bits-clang-O3native-fast-c++11), so that it is compiled here by gcc alone.
# gcc contracts before it knows the processor: for AArch64 only the header and least_squares.c have code of their own.
while read -r name version compiler; do
    found=$(${compiler%% *} -dumpversion 2> /dev/null)
    # Other versions may inline and unroll other functions, so that numbers differ without a contraction.
    case $found in $version*) ;; *) echo "skip contraction, $name: the list is for version $version, found '$found'"; continue ;; esac
    found=$(contracted $out/planted.c $compiler 2>&1)
    case $found in 'planted: 0 fma, 1 if contracted; ') echo "ok contraction, $name: a planted one is found" ;;
    *) echo "FAIL contraction, $name: a planted one is not found: $found" ;; esac
    for source in $out/header.c ../examples/int8/int8.c ../examples/reluize/passes/least_squares.c ../examples/network/refit.c $study; do
        case $name-$source in *least_squares.c) ;; clang*header.c|AArch64*examples*) continue ;; esac
        found=$(contracted $source $compiler 2>&1)
        what="contraction, $name, $(basename $source)"
        [ -z "$found" ] && echo "ok $what: no product is contracted, except exact ones" || echo "FAIL $what: $found"
    done
done <<'END'
gcc 12 gcc -O1 -fexpensive-optimizations -finline-small-functions -march=x86-64-v3
clang 14 clang -O1 -finline-functions -march=x86-64-v3
AArch64 12 aarch64-linux-gnu-gcc -O1 -fexpensive-optimizations -finline-small-functions
END
