# SPDX-License-Identifier: MIT-0
# test_interface.sh: checks how the header behaves in a program: warnings, languages, ways to include it, symbols, globals, macros,
# library calls, refused flags. The ten lines at its top must print what their comments state.
: "${CC:=cc}"
: "${WARNINGS:=-Wall -Wextra -Wpedantic -Wshadow -Wundef -Wconversion -Wsign-conversion -Wcast-qual -Wdouble-promotion}"
dir=build/interface
rm -rf $dir
mkdir -p $dir/deep/er
failed=0
ok()   { echo "ok $1"; }
fail() { echo "FAIL $1: $2"; failed=1; }
skip() { echo "skip $1: $2"; }
have() { command -v "$1" > /dev/null; }
# judge NAME COMMAND...: ok when it succeeds and prints nothing
judge()
{
    name=$1
    shift
    if said=$("$@" 2>&1) && [ -z "$said" ]; then ok "$name"; else fail "$name" "$(echo "${said:-failed}" | grep -m1 -E 'error|warning|.' | cut -c1-200)"; fi
}

cat > $dir/use.c <<'END'
#include "lgelu.h"
#include "lgelu.h"
float use(float x);
float use(float x) { lgelu_forward(&x, &x, 2, 1); return x; }
END
sed 's/^#include "lgelu.h"$/#define LGELU_IMPLEMENTATION\n&\n#undef LGELU_IMPLEMENTATION/' $dir/use.c > $dir/make.c

# ---- no warnings, in any language, with any switch; each file includes the header twice ----
for language in 'gcc -x c -std=c99' 'gcc -x c -std=c11' 'g++ -x c++ -std=c++11' 'g++ -x c++ -std=c++20' 'clang -x c -std=c99' 'clang -x c -std=c11' 'clang++ -x c++ -std=c++11' 'clang++ -x c++ -std=c++20'; do
    compiler=${language%% *}
    if ! have "$compiler"; then skip "no warnings, $language" "no $compiler here"; continue; fi
    judge "no warnings, $language, declarations alone" $language $WARNINGS -Werror -DLGELU_TRAINER -I.. -c $dir/use.c -o $dir/use.o
    case $language in *99|*++11) ;; *)
        judge "no warnings, $language, trainer" $language $WARNINGS -Werror -DLGELU_TRAINER -fsyntax-only -I.. $dir/make.c
        continue ;;
    esac
    judge "no warnings, $language, without the trainer" $language $WARNINGS -Werror -fsyntax-only -I.. $dir/make.c
    # optimised, where gcc sees more: what the other tests compile anyhow, build/lgelu.o and tools/same_bits.sh
    for switch in STATIC NO_SIMD NO_AVX512 'STATIC -DLGELU_NO_SIMD' 'DEF=extern' 'ASSERT(x)=((void)(x))'; do
        # one language of each compiler; the other one where functions are static or left out. `make matrix` tries all.
        case $language-$switch in gcc*|clang++*|*-NO_AVX512|*STATIC\ *) ;; *) continue ;; esac
        judge "no warnings, $language, trainer, LGELU_$switch" $language $WARNINGS -Werror -DLGELU_TRAINER $(echo "-DLGELU_$switch") -fsyntax-only -I.. $dir/make.c
    done
done

# ---- no warnings at the level of CMake's Release, where gcc follows pointers to locals, and of a whole program at once ----
# `make matrix PARTS=levels` tries each level of each compiler and language. A planted pointer to a local shows that gcc looks.
cat > $dir/whole.c <<'END'
#define LGELU_TRAINER
#define LGELU_IMPLEMENTATION
#include "lgelu.h"
int main(void) { return lgelu_isa() > LGELU_AVX512; }
END
if have g++; then
    judge "no warnings, g++, -O3, trainer" g++ -x c++ -std=c++11 -O3 $WARNINGS -Werror -I.. -c $dir/whole.c -o $dir/whole.o
    judge "no warnings, g++, -O3 -flto, a whole program" g++ -x c++ -std=c++11 -O3 -flto $WARNINGS -Werror -I.. $dir/whole.c -o $dir/whole -lm
    echo 'struct s { int *p; }; void keep(struct s *s); void keep(struct s *s) { int next = 0; s->p = &next; }' > $dir/dangling.c
    if g++ -x c++ -O3 -Wall -Werror -c $dir/dangling.c -o $dir/dangling.o 2> /dev/null; then
        fail "g++ reports a pointer to a local that is left behind" "it does not"
    else ok "g++ reports a pointer to a local that is left behind"; fi
else skip "no warnings, g++, -O3" "no g++ here"; fi

# ---- no warnings where a sanitizer stops gcc from inlining ----
if have gcc; then judge "no warnings, gcc, -O1 -fsanitize=address" gcc -std=c99 -O1 -fsanitize=address $WARNINGS -Werror -DLGELU_NO_SIMD -I.. -c $dir/make.c -o $dir/use.o
else skip "no warnings, gcc, -O1 -fsanitize=address" "no gcc here"; fi

# ---- the compiler's own language; processors with arithmetic on halves, where gcc's FLT_EVAL_METHOD is 16 ----
# C with halves is compiled to the end, which tools/same_bits.sh does with -march=native; a compiler that doesn't know them takes that.
for language in 'gcc -x c' 'g++ -x c++' 'clang -x c' 'clang++ -x c++'; do
    compiler=${language%% *}
    if ! have "$compiler"; then skip "no -std, $language" "no $compiler here"; continue; fi
    for flags in -mavx512fp16 '-march=native -fsyntax-only' ''; do
        echo 'int x;' | $language $flags -fsyntax-only - 2> /dev/null && break
    done
    case $flags-$language in *fp16-*++|-[cg]*) flags="$flags -fsyntax-only" ;; esac
    judge "no -std, $language $flags" $language $flags -DLGELU_TRAINER -I.. -c $dir/make.c -o $dir/use.o
done

# ---- versions agree; a custom assert is called; one line for a C that is too old; a C99 compiler that is neither gcc nor clang ----
title=$(sed -n '1,3s/.*lgelu.h - v\([0-9.]*\) - .*/\1/p' ../lgelu.h)
macro=$(sed -n 's/^#define LGELU_VERSION "\(.*\)"$/\1/p' ../lgelu.h)
parts=$(sed -n 's/^#define LGELU_VERSION_[MP][A-Z]* \([0-9]*\)$/\1/p' ../lgelu.h | paste -sd.)
history=$(sed -n 's/^   HISTORY  *\([0-9.]*\) .*/\1/p' ../lgelu.h)
if [ -n "$title" ] && [ "$title" = "$macro" ] && [ "$title" = "$parts" ] && [ "$title" = "$history" ]; then ok "one version, $title"
else fail "one version" "title $title, LGELU_VERSION $macro, its numbers $parts, HISTORY $history"; fi
cat > $dir/assert.c <<'END'
static int asked, refused;
#define LGELU_ASSERT(condition) (asked++, refused += !(condition))
#define LGELU_IMPLEMENTATION
#include "lgelu.h"
#include <stdio.h>
int main(void)
{
    float x = 1;
    lgelu_adamw o = lgelu_adamw_defaults(1e-3f);
    lgelu_forward(&x, &x, 1, 1);
    if (refused) return puts("a sound call was refused"), 1;
    lgelu_forward(0, 0, 1, 0);
    if (refused) return puts("no numbers need no array"), 1;
    lgelu_adamw_step(0, 0, 0, 0, &o, 0, 0);
    return !(asked > 2 && refused == 1) && printf("asked %d times, refused %d, expected step 0 to be refused\n", asked, refused);
}
END
if $CC -std=c99 -O0 -I.. $dir/assert.c -o $dir/assert -lm && said=$($dir/assert); then ok "LGELU_ASSERT is asked about programming errors"
else fail "LGELU_ASSERT is asked about programming errors" "${said:-does not compile}"; fi
printf '#define LGELU_IMPLEMENTATION\n#include "lgelu.h"\n' > $dir/old.c
errors=$($CC -std=c89 -DLGELU_TRAINER -I.. -fsyntax-only $dir/old.c 2>&1 | grep -c 'error:')
if [ "$errors" = 1 ]; then ok "C89 gets one line"; else fail "C89 gets one line" "$errors errors"; fi
if have tcc; then                            # scalar code, on one thread
    if tcc -w -I.. -I. -Itools kernels/test_same_bits.c -o $dir/tcc -lm > $dir/tcc.out 2>&1 && $dir/tcc --short hashes.txt > $dir/tcc.out 2>&1; then ok "tcc: the same bits"
    else fail "tcc: the same bits" "$(grep -m1 -E 'FAIL|error' $dir/tcc.out)"; fi
else skip "tcc" "no tcc here"; fi

# ---- the file includes itself by name: it is found from another folder ----
cp $dir/make.c $dir/deep/er/make.c
judge "included through a relative -I from another folder" sh -c "cd $dir/deep && $CC -std=c99 -DLGELU_TRAINER -I../../../.. -fsyntax-only er/make.c"
sed 's/"lgelu.h"/"..\/..\/..\/..\/..\/lgelu.h"/' $dir/make.c > $dir/deep/er/path.c
judge "included by a relative path, without -I" sh -c "cd $dir/deep && $CC -std=c99 -DLGELU_TRAINER -fsyntax-only er/path.c"

# ---- two copies in one program ----
cat > $dir/one.c <<'END'
#define LGELU_STATIC
#define LGELU_IMPLEMENTATION
#define LGELU_TRAINER
#include "lgelu.h"
float one(float x);
float one(float x) { lgelu_isa_limit(LGELU_ISA_SCALAR); lgelu_forward(&x, &x, 2, 1); return x; }
END
cat > $dir/main.c <<'END'
#define LGELU_IMPLEMENTATION
#define LGELU_TRAINER
#include "lgelu.h"
float one(float x);
int main(void) { float x = -1.25f, y; lgelu_forward(&y, &x, 2, 1); x = one(x); return memcmp(&x, &y, sizeof x) != 0; }
END
# without -fPIC tables with addresses in them are in .rodata, so that .data and .bss contain only what can really change
for part in one main; do $CC -std=c99 -O0 -fno-pic -I.. -c $dir/$part.c -o $dir/$part.o || echo "FAIL $part.c: does not compile"; done
judge "two copies, static and extern, in one program: the same bits" sh -c "$CC -no-pie $dir/one.o $dir/main.o -o $dir/two -lm && $dir/two"

if [ -e build/lgelu.warnings ]; then judge "no warnings, $CC -O2 with OpenMP, the object that the tests link" cat build/lgelu.warnings; fi

# ---- symbols ----
if have nm; then
    for language in "$CC -x c -std=c99" 'g++ -x c++ -std=c++11'; do
        if ! have "${language%% *}"; then skip "symbols, $language" "no ${language%% *} here"; continue; fi
        case $language in *++11) $language -O0 -fno-pic -I.. -c $dir/main.c -o $dir/main.o || { fail "symbols, $language" "does not compile"; continue; } ;; esac
        odd=$(nm -g --defined-only $dir/main.o | awk '$3 !~ /^lgelu_/ && $3 != "main" { print $3 }' | tr '\n' ' ')
        if [ -z "$odd" ]; then ok "every extern symbol begins with lgelu_, $language"; else fail "every extern symbol begins with lgelu_, $language" "$odd"; fi
        # those of <cpuid.h> are functions of their own without an optimiser
        odd=$(nm --defined-only $dir/main.o | awk '$2 ~ /^[tTdDbB]$/ && $3 !~ /^(_ZL[0-9]+)?(lgelu_|__get_cpuid)/ && $3 != "main" { print $3 }' | tr '\n' ' ')
        if [ -z "$odd" ]; then ok "every local symbol too, $language"; else fail "every local symbol too, $language" "$odd"; fi
        odd=$(nm --defined-only $dir/main.o | awk '$2 ~ /^[dDbBcCgGsS]$/ { print $3 }' | tr '\n' ' ')
        if [ "$odd" = "lgelu__isa_in_force " ] || [ "$odd" = "_ZL19lgelu__isa_in_force " ]; then ok "one thing can change: the instruction set in force, $language"; else fail "one thing can change: the instruction set in force, $language" "$odd"; fi
        odd=$(nm -u $dir/main.o | awk '{ print $2 }' | grep -vxE '(mem(cpy|set|cmp|move|chr)|str(chr|cmp|ncmp|len)|sched_yield|fmaf?|sqrtf?|frexp|copysign|floorf?|one|_Z3onef|__assert_fail|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_)' | tr '\n' ' ')
        if [ -z "$odd" ]; then ok "calls nothing but mem*, str*, libm and sched_yield, $language"; else fail "calls nothing but mem*, str* and libm, $language" "$odd"; fi
    done
    odd=$(nm -g --defined-only $dir/one.o | awk '$3 != "one" { print $3 }' | tr '\n' ' ')
    if [ -z "$odd" ]; then ok "LGELU_STATIC leaves no extern symbol"; else fail "LGELU_STATIC leaves no extern symbol" "$odd"; fi
else
    skip symbols "no nm here"
fi

# ---- macros: what is defined after the header and was not before ----
for compiler in gcc clang; do
    if ! have $compiler; then skip "macros, $compiler" "no $compiler here"; continue; fi
    grep -ho '#include <[a-z]*\.h>' ../lgelu.h | sort -u | sed '/intrin.h\|arm_neon/d' > $dir/before.c
    case $(uname -m) in x86_64) echo '#include <immintrin.h>' >> $dir/before.c ;; aarch64) sed -i '/cpuid/d' $dir/before.c; echo '#include <arm_neon.h>' >> $dir/before.c ;; esac
    { cat $dir/before.c; echo '#define LGELU_TRAINER'; echo '#define LGELU_IMPLEMENTATION'; echo '#include "lgelu.h"'; } > $dir/after.c
    for f in before after; do $compiler -std=c99 -I.. -dM -E $dir/$f.c | awk '{ sub(/\(.*/, "", $2); print $2 }' | sort -u > $dir/$f.names; done
    odd=$(comm -13 $dir/before.names $dir/after.names | grep -v '^LGELU_' | tr '\n' ' ')
    if [ ! -s $dir/after.names ]; then fail "no macro is left behind but LGELU_*, $compiler" "nothing to compare"
    elif [ -z "$odd" ]; then ok "no macro is left behind but LGELU_*, $compiler"; else fail "no macro is left behind but LGELU_*, $compiler" "$odd"; fi
done

# ---- flags that break the promises are refused, with the cure ----
for compiler in gcc clang; do
    if ! have $compiler; then skip "refused flags, $compiler" "no $compiler here"; continue; fi
    for flag in -ffast-math -Ofast -ffinite-math-only; do
        if said=$($compiler -std=c99 $flag -Wfatal-errors -I.. -fsyntax-only $dir/make.c 2>&1); then fail "$compiler $flag is refused" "it compiles"
        elif echo "$said" | grep -q 'error.*lgelu.h: compile this file without'; then ok "$compiler $flag is refused, naming the cure"
        else fail "$compiler $flag is refused, naming the cure" "$(echo "$said" | head -n 1)"; fi
        judge "$compiler $flag may use the declarations" $compiler -std=c99 $flag -I.. -fsyntax-only $dir/use.c
    done
done

# ---- the ten lines at the top ----
awk '/Ten lines to the first result/ { on = 1; next } on && /^       [#in }{]|^           / { print } on && /^       }/ { exit }' ../lgelu.h > $dir/ten.c
sed -n 's|^ *// \(-*[0-9].*\)|\1|p' $dir/ten.c > $dir/ten.expected
if $CC -I.. $dir/ten.c -o $dir/ten -lm && $dir/ten > $dir/ten.printed && [ -s $dir/ten.expected ] && cmp -s $dir/ten.printed $dir/ten.expected; then ok "the ten lines at the top print what they say"
else fail "the ten lines at the top print what they say" "$(paste -d'|' $dir/ten.expected $dir/ten.printed | tr '\n' ' ')"; fi
exit $failed
