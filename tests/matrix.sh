# SPDX-License-Identifier: MIT-0
# matrix.sh PART: tests each compiler, language, processor and libm that is installed, and reports the others as skipped.
#   languages    gcc and clang, each language, and tcc: test_same_bits
#   processors   others under emulation, x86-64 without AVX, 32 bits, WebAssembly, musl, MinGW under Wine: test_same_bits
#   levels       -O0, -O2 and -O3, with -flto and without, of a whole program with the kernels alone or the trainer: no warning
#   switches     the header's switches alone and in pairs, clang's -Weverything, and several ways to include it: no warning
# `make matrix` runs all parts and prints the table and that of the hashes (matrix.sh table LOG...). The name of a case is "compiler;
# language; processor; libm; what"; a hash over all hashes of test_same_bits is the line "# compiler; language; processor; libm; hash".
# BRIEF=1 omits what the tests, or another row, test as well: the switches and forms of #include where test_interface tries them, the
# processors of test_web and of `make portability`, the warnings of an older clang, a second language, order of bytes or foreign libm, 64
# bits without vectors, and runs of test_same_bits with layers of another one.
# 32-bit ARM is then only compiled for.
# Debian packages: g++, clang, clang-19, tcc, and those that tools/processors.sh names.
. tools/verdict.sh
part=$1
if [ "$part" = table ]; then
    shift
    awk -F '; ' 'BEGIN { line("compiler", "language", "processor", "libm", "what", "") }
        function line(a, b, c, d, e, f) { printf "%-12s %-9s %-22s %-14s %-44s %s\n", a, b, c, d, e, f }
        /^# .*; / { sub(/^# /, ""); platform[++platforms] = $0; different += !seen[$5]++ }
        /^(ok|skip|FAIL) .*; / {
            result = $1; sub(/ .*/, "", result); sub(/^[^ ]* /, "", $1)
            why = ""; if (result != "ok") { why = $5; sub(/^[^:]*: /, "", why); sub(/:.*/, "", $5) }
            line($1, $2, $3, $4, $5, result == "ok" ? "pass" : result == "skip" ? "skipped: " why : "FAIL: " why) }
        END {
            if (!platforms) exit
            printf "\n"
            line("compiler", "language", "processor", "libm", "hash of the hashes of all parts", "")
            for (i = 1; i <= platforms; i++) { split(platform[i], p, "; "); line(p[1], p[2], p[3], p[4], p[5], "") }
            printf "%d platforms, %s\n\n", platforms, different == 1 ? "one hash" : "FAIL: " different " hashes"
            exit different > 1
        }' "$@"
    exit
fi
dir=build/matrix/$part
rm -rf "$dir"
mkdir -p "$dir"
failed=0
have() { command -v "$1" > /dev/null; }
. tools/processors.sh
native=$(uname -m | tr _ -)

# bits COMPILER LANGUAGE PROCESSOR LIBM RUNNER COMMAND...: compiles test_same_bits for this row and runs it with the runner
bits()
{
    name="$1; $2; $3; $4; same bits" runner=$5
    shift 5
    why=$(able "$@")
    if [ -n "$why" ]; then echo "skip $name: $why"; return; fi
    if ! "$@" -I.. -I. kernels/test_same_bits.c -o "$dir/bits.exe" -lm > "$dir/bits.out" 2>&1; then
        echo "FAIL $name: does not compile: $(grep -m1 error "$dir/bits.out")"; failed=1; return
    fi
    timeout 1500 $runner "$dir/bits.exe" ${BRIEF:+--short} hashes.txt > "$dir/bits.raw" 2> "$dir/bits.err"
    status=$?
    tr -d '\r' < "$dir/bits.raw" > "$dir/bits.log"
    if [ $status = 0 ] && grep -q '^ok ' "$dir/bits.log" && ! grep -q '^FAIL ' "$dir/bits.log"; then echo "ok $name"
    else
        echo "FAIL $name: status $status, $(sed -n 's/^FAIL //p' "$dir/bits.log" | paste -sd, | cut -c1-200)"
        failed=1
    fi
    sed -n "s/^# together /# ${name%; *}; /p" "$dir/bits.log"
}
# quiet COMPILER LANGUAGE PROCESSOR LIBM WHAT COMMAND...: one case, which fails if the command prints anything
quiet()
{
    name="$1; $2; $3; $4; $5"
    shift 5
    if said=$("$@" 2>&1) && [ -z "$said" ]; then echo "ok $name"
    else echo "FAIL $name: $(echo "${said:-it failed}" | grep -m1 -E 'error|warning|.' | cut -c1-200)"; failed=1; fi
}

case $part in
languages)
    for c in gcc:g++ clang:clang++ clang-19:clang++-19; do
        for s in c99 c11 c17; do bits "${c%:*}" $s "$native" glibc '' "${c%:*}" -O1 -std=$s; done
        for s in c++11 c++14 c++17 c++20; do bits "${c%:*}" $s "$native" glibc '' "${c#*:}" -O1 -std=$s -x c++; done
    done
    bits tcc c99 "$native" glibc '' tcc -w
    ;;
processors)
    on() { target "$1"; bits "$2" $language "$3" "$4" "$runner" $compile -O1; }
    on no-avx        gcc 'x86-64 without AVX' glibc
    on i386          gcc 'i386, SSE2' glibc
    [ "$BRIEF" ] || on musl musl-gcc "$native" musl
    on mingw         MinGW 'x86-64, Windows' msvcrt
    [ "$BRIEF" ] || on mingw++ MinGW 'x86-64, Windows' msvcrt
    unwine
    [ "$BRIEF" ] || on aarch64 gcc AArch64 glibc
    [ "$BRIEF" ] || on aarch64-clang clang AArch64 glibc
    # It has no vector kernels: i386 has its sizes, and x86-64 without AVX its fma in software.
    if [ -z "$BRIEF" ]; then on arm gcc '32-bit ARM' glibc
    else
        target arm
        if have "${compile%% *}"; then quiet gcc $language '32-bit ARM' glibc compiles $compile -I.. -I. -fsyntax-only kernels/test_same_bits.c
        else echo "skip gcc; $language; 32-bit ARM; glibc; compiles: no ${compile%% *} here"; fi
    fi
    [ "$BRIEF" ] || on riscv64 gcc 'RISC-V 64' glibc
    on s390x         gcc 's390x, big-endian' glibc
    if [ -z "$BRIEF" ]; then
        on ppc64        gcc 'ppc64, big-endian' glibc
        on wasm         clang 'WebAssembly' wasi-libc
        on wasm-simd128 clang 'WebAssembly, SIMD128' wasi-libc
    fi
    ;;
levels)
    printf '#define LGELU_IMPLEMENTATION\n#include "lgelu.h"\nint main(void) { float x = 1; lgelu_forward(&x, &x, 1, 1); return 0; }\n' > "$dir/use.c"
    for c in 'gcc c99' 'g++ c++11' 'clang c99' 'clang++ c++11'; do
        command=${c% *} language=${c#* } kind=c
        case $language in c++*) kind=c++ ;; esac
        case $command in g++) shown=gcc ;; clang++) shown=clang ;; *) shown=$command ;; esac
        for level in -O0 -O2 -O3; do
            for link in '' -flto; do
                what="$level${link:+ }$link"
                # clang's objects are linked by lld
                case $command$link in clang*-flto) link='-flto -fuse-ld=lld' ;; esac
                if ! echo 'int main() { return 0; }' | $command $link -x $kind - -o "$dir/main" 2> /dev/null; then
                    echo "skip $shown; $language; $native; glibc; $what: no $command here that has this"; continue
                fi
                for part in '' -DLGELU_TRAINER; do
                    quiet $shown $language "$native" glibc "$what${part:+, trainer}" \
                        $command -x $kind -std=$language $level $link $WARNINGS -Werror $part -I.. "$dir/use.c" -o "$dir/use" -lm
                done
            done
        done
    done
    ;;
switches)
    printf '#include "lgelu.h"\n#include "lgelu.h"\nint nothing(void);\nint nothing(void) { return 0; }\n' > "$dir/use.c"
    sed 's/"\(lgelu.h\)"/<\1>/' "$dir/use.c" > "$dir/angle.c"
    printf '#include <windows.h>\n' | cat - "$dir/use.c" > "$dir/windows.c"
    printf 'extern "C" {\n#include "lgelu.h"\n#include "lgelu.h"\nint nothing(void);\n}\nint nothing(void) { return 0; }\n' \
        > "$dir/extern.c"
    set -- LGELU_TRAINER LGELU_STATIC LGELU_DEF=extern LGELU_NO_SIMD LGELU_NO_AVX512 'LGELU_ASSERT(x)=((void)(x))'
    for c in 'gcc c99' 'g++ c++11' 'clang c99' 'clang++ c++11' 'x86_64-w64-mingw32-gcc c99'; do
        command=${c% *} language=${c#* } kind=c processor=$native libm=glibc
        case $language in c++*) kind=c++ ;; esac
        case $command in
        g++) shown=gcc ;; clang++) shown=clang ;;
        *mingw*) shown=MinGW processor='x86-64, Windows' libm=msvcrt ;;
        *) shown=$command ;;
        esac
        if ! have "$command"; then
            echo "skip $shown; $language; $processor; $libm; the six switches: no $command here"; continue
        fi
        try() { quiet "$shown" "$language" "$processor" "$libm" "$@"; }
        compile="$command -x $kind -std=$language $WARNINGS -Werror -I.. -fsyntax-only"
        # each of the five together with LGELU_IMPLEMENTATION, without which static functions would be missing
        if [ -z "$BRIEF" ] || [ $shown = MinGW ]; then
            for first in '' "$@"; do
                for second in '' "$@"; do
                    if [ -n "$first" ] && ! [ "$first" '<' "$second" ]; then continue; fi
                    if [ -n "$first" ]; then case $command in gcc | clang++) ;; *) continue ;; esac; fi
                    set_of="${first:+-D$first }${second:+-D$second}"
                    $compile $set_of -DLGELU_IMPLEMENTATION "$dir/use.c" || echo "with $set_of"
                    case $set_of in *STATIC*) ;; *) $compile $set_of "$dir/use.c" || echo "with $set_of alone" ;; esac
                done
            done > "$dir/said" 2>&1
            case $command in gcc | clang++) sets='alone and in pairs' ;; *) sets=alone ;; esac
            try "the six switches, $sets" cat "$dir/said"
        fi
        if [ -z "$BRIEF" ] || [ $command = gcc ] || [ $shown = MinGW ]; then
            try 'twice, from <lgelu.h>' $compile -DLGELU_TRAINER -DLGELU_IMPLEMENTATION "$dir/angle.c"
        fi
        case $command in
        *mingw*)
            try 'after <windows.h>' $compile -DLGELU_TRAINER -DLGELU_IMPLEMENTATION "$dir/windows.c"
            printf '#include "../../../../examples/common/part.h"\nint main(void) { return part_replace("a", NULL, NULL); }\n' > "$dir/part.c"
            try 'examples/common/part.h' $compile "$dir/part.c"
            try 'examples/common/part.h after <windows.h>' $compile -include windows.h "$dir/part.c"
            ;;
        *++) try 'inside extern "C"' $compile -DLGELU_TRAINER "$dir/extern.c" ;;
        esac
    done
    # -Weverything, less: macros that name themselves, the vocabulary's words among them; functions that may be unused; gaps in a
    # struct; x == y between floats where just that is meant; a default in a switch over an enum; loads that need no alignment; a
    # comma in a for; (double) before a call; a declaration behind a statement, as in C99; clang 19: an array without a bound
    less='disabled-macro-expansion used-but-marked-unused padded float-equal switch-enum cast-align comma bad-function-cast'
    less="$less declaration-after-statement unsafe-buffer-usage"
    # and in C++ what is C in it: casts, NULL, variadic macros of C99, two underscores within a name
    more='old-style-cast zero-as-null-pointer-constant c++98-compat-pedantic reserved-identifier reserved-macro-identifier'
    compilers='clang clang-19'
    if [ "$BRIEF" ] && have clang-19; then compilers=clang-19; fi
    for c in $compilers; do
        for s in c99 c++11; do
            kind=c
            case $s in c++*) kind=c++ without="$less $more" ;; *) without=$less ;; esac
            if ! have $c; then echo "skip $c; $s; $native; glibc; -Weverything: no $c here"; continue; fi
            quiet $c $s "$native" glibc "-Weverything less $(echo $without | wc -w)" $c -x $kind -std=$s -Weverything \
                -Wno-unknown-warning-option $(for w in $without; do echo "-Wno-$w"; done) \
                -Werror -I.. -DLGELU_TRAINER -DLGELU_IMPLEMENTATION -fsyntax-only "$dir/use.c"
        done
    done
    ;;
*)  echo "FAIL matrix.sh: no part '$part'"; exit 2 ;;
esac
exit $failed
