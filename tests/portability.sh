# SPDX-License-Identifier: MIT-0
# portability.sh COMPILER-LEVEL-CONTRACTION-LANGUAGE...: runs test_same_bits in each of these configurations (see same_bits.sh), then
# the test programs on other processors under emulation, on 32 bits, with another libc, under sanitizers and under valgrind.
# ONLY=AArch64 runs the cases whose name begins so, without the configurations. BRIEF=1, as CI: the kernels and
# test_same_bits, whose hashes cover networks, optimisers and hardening as well; test_contraction looks for contracted products.
# Debian packages: those that tools/processors.sh names, valgrind.
: "${ONLY:=}"
dir=build/portability
mkdir -p $dir
failed=0
[ -z "$ONLY" ] || set --

for configuration in "$@"; do
    sh tools/same_bits.sh "$configuration" > $dir/bits.out 2>&1 || failed=1
    if grep -q '^skip ' $dir/bits.out; then grep '^skip ' $dir/bits.out
    elif grep -q '^FAIL ' $dir/bits.out; then
        echo "FAIL same bits, $configuration: $(sed -n 's/^FAIL //p' $dir/bits.out | paste -sd';' | cut -c1-300)"
    elif grep -q '^ok ' $dir/bits.out; then echo "ok same bits, $configuration"
    else echo "FAIL same bits, $configuration: $(tail -n 1 $dir/bits.out)"; failed=1
    fi
done

. tools/processors.sh
# run NAME TARGET FLAGS... -- PROGRAM...: compiles the implementation, and each program, for the target with the flags and runs
# it; one case each. $under replaces the target's runner
run()
{
    name=$1
    case $name in "$ONLY"*) ;; *) return ;; esac
    target "$2"
    runner=${under:-$runner}
    shift 2
    while [ "$1" != -- ]; do compile="$compile $1"; shift; done
    shift
    why=$(able $compile)
    if [ "$why" ]; then echo "skip $name: $why"; return; fi
    if ! $compile -c tools/lgelu.c -o $dir/lgelu.o 2> $dir/lgelu.out; then
        echo "FAIL $name: lgelu.h does not compile: $(grep -m1 error $dir/lgelu.out)"
        failed=1
        return
    fi
    for program in "$@"; do
        source=$(ls */$program.c 2> /dev/null)
        if [ -z "$source" ]; then echo "FAIL $name: no $program.c"; failed=1; continue; fi
        link="-DLINKED $dir/lgelu.o"
        if grep -q 'define LGELU_IMPLEMENTATION' "$source" && ! grep -q LINKED "$source"; then link=; fi
        if ! $compile -I.. -I. "$source" $link -o $dir/program -lm $threads > $dir/program.out 2>&1; then
            echo "FAIL $name, $program: does not compile: $(grep -m1 error $dir/program.out)"; failed=1; continue
        fi
        # In CI fewer products, and test_same_bits without the runs whose layers others have; the hash of the kernels is of the whole test.
        option=
        case $BRIEF-$program in
        ?*-test_gemm|?*-test_same_bits) option=--short ;;
        ?*-test_int8_planes|?*-test_int8_products) option=300 ;;
        esac
        timeout 1800 $runner $dir/program $option > $dir/program.out 2>&1
        status=$?
        if [ $status = 0 ] && grep -q '^ok ' $dir/program.out && ! grep -q '^FAIL ' $dir/program.out; then
            echo "ok $name, $program ($(grep -c '^ok ' $dir/program.out) cases)"
        else
            failed=1
            if grep -q '^FAIL ' $dir/program.out; then
                echo "FAIL $name, $program: $(sed -n 's/^FAIL //p' $dir/program.out | paste -sd';' | cut -c1-300)"
            else echo "FAIL $name, $program: status $status: $(grep -m1 -E 'ERROR|error|Invalid' $dir/program.out)"; fi
        fi
    done
}
numbers='test_same_bits test_hardness test_optimiser test_yardstick test_instruments test_network test_exchange'
[ -z "$BRIEF" ] || numbers=test_same_bits
kernels='test_kernels test_half test_gemm'

run 'x86, 32 bits' i386 -O2 -- $numbers $kernels
run 'another libm (musl)' musl -O2 -- $numbers $kernels
run 'AArch64, gcc' aarch64 -O2 -- $numbers $kernels
[ "$BRIEF" ] || run 'AArch64, gcc -O3, contracted' aarch64 -std=gnu99 -O3 -ffp-contract=fast -- test_same_bits
run 'AArch64 without an optimiser' aarch64 -O0 -- test_same_bits
for under in 'qemu-aarch64 -cpu max' 'qemu-aarch64 -cpu cortex-a53'; do
    for c in aarch64 aarch64-clang; do
        run "AArch64, integers, $c, ${under##* }" $c -O2 -std=gnu99 -I../examples/common -I../examples/reluize/ops -- \
            test_int8_planes test_int8_products
    done
done
under=
run 'AArch64, clang' aarch64-clang -O2 -- $numbers $kernels
run 's390x, big-endian' s390x -O2 -- $numbers $kernels
run 'powerpc64, big-endian' ppc64 -O2 -- $numbers $kernels
run 'RISC-V' riscv64 -O2 -- $numbers $kernels
sanitized='-O1 -g -fno-sanitize-recover=all'
# The other two programs of $kernels need threads or guard pages, which are missing there.
run 'WebAssembly' wasm -O2 -- $numbers test_half
run 'WebAssembly, SIMD128' wasm-simd128 -O2 -- $numbers test_half
run 'gcc, address and undefined' native $sanitized -fsanitize=address,undefined -- $numbers $kernels test_data
run 'clang, address and undefined' clang $sanitized -fsanitize=address,undefined -- $numbers $kernels
run 'clang, uninitialised memory' clang $sanitized -fsanitize=memory -- test_network test_exchange test_optimiser \
    test_instruments test_gemm
run 'gcc, threads' native -O1 -g -fsanitize=thread -- test_gemm test_network
# valgrind does not support AVX-512; its cpuid reports that, and the dispatch must obey.
under='valgrind -q --error-exitcode=9 --leak-check=full'
run 'valgrind' native -O1 -g -- test_network test_exchange test_optimiser test_instruments
exit $failed
