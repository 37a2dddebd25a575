# SPDX-License-Identifier: MIT-0
# analyse.sh: runs gcc -fanalyzer, clang-tidy and cppcheck over lgelu.h, the examples, the fuzzers and the helpers of the tests. A
# finding fails unless tools/analyse.txt lists it with a reason; a row of that list that matches no finding fails, too.
# ONLY='gcc header' selects the cases whose name begins so. The header is analysed as scalar code, and by gcc for each instruction set.
. tools/verdict.sh
out=${OUT:-build/analyse}
only=$1
table=tools/analyse.txt
rm -rf $out
mkdir -p $out
tab=$(printf '\t')
tidy=$(command -v clang-tidy-19 || command -v clang-tidy)
checks='-*,clang-analyzer-*,bugprone-*'
checks=$checks$(grep "^tidy${tab}everywhere${tab}" $table | cut -f 3 | sed 's/^/,-/' | tr -d '\n')

# judge TOOL NAME: reads the lines `FILE:LINE: CHECK: TEXT` in $out/found
judge()
{
    sort -u $out/found > $out/found.once
    awk -F '\t' -v tool="$1" -v table=$table -v used=$out/used '
    function source(file, line,    text, i) {
        if (!(file in read)) { while ((getline text < file) > 0) row[file, ++read[file]] = text; close(file) }
        return row[file, line]
    }
    BEGIN {
        while ((getline < table) > 0) if ($1 == tool && $2 != "everywhere") {
            file[++n] = $2; check[n] = $3; like[n] = $4; where[n] = $0
        }
        FS = ": "
    }
    {
        split($1, at, ":")
        text = source(at[1], at[2])
        for (i = 1; i <= n; i++)
            if (at[1] ~ file[i] && $2 == check[i] && (like[i] == "*" || index(text, like[i]))) {
                print where[i] >> used
                listed++
                next
            }
        print "# " $0
        print "#     " text
        open++
    }
    END { printf "%d %d\n", open, listed > used ".count" }' $out/found.once
    read open listed < $out/used.count
    [ "$open" = 0 ] && echo "ok $1 $2: nothing new, $listed listed with a reason" || echo "FAIL $1 $2: $open findings, above"
}
folders="-I.. -I. -Itools $(include_flags ../examples)"
wanted() { case "$1" in "$only"*) return 0 ;; esac; return 1; }
plain() { sed 's/^#define LGELU_IMPLEMENTATION$//' $1; }

# begin TOOL NAME SOURCE: succeeds if this case is selected. $out/plain.c is then the source without the implementation, which is
# analysed once, elsewhere. The header itself is a source, because clang would otherwise skip its functions.
begin()
{
    wanted "$1 $2" || return
    name=$2
    source=$3
    if [ "$1" != gcc ] && [ $source = ../lgelu.h ]; then cp $source $out/plain.c; else plain $source > $out/plain.c; fi
}
with_gcc()                       # NAME SOURCE FLAGS
{
    begin gcc "$1" $2 || return
    shift 2
    gcc -std=c99 -O0 -fanalyzer -fdiagnostics-plain-output $folders -I"$(dirname $source)" "$@" -c $out/plain.c -o $out/plain.o \
        2> $out/gcc.err || { echo "FAIL gcc $name: $(grep -m1 error $out/gcc.err)"; return; }
    sed -n 's|^\([^ ]*\):\([0-9]*\):[0-9]*: warning: \(.*\) \[\(CWE.*\] \[\)*-Wanalyzer-\(.*\)\]$|\1:\2: \5: \3|p' $out/gcc.err |
        sed "s|^$out/plain.c|$source|" > $out/found
    judge gcc "$name"
}
with_tidy()
{
    begin tidy "$1" $2 || return
    shift 2
    $tidy --quiet --checks="$checks" $out/plain.c -- -x c -std=c99 $folders -I"$(dirname $source)" "$@" \
        > $out/tidy.out 2> $out/tidy.err || grep -q 'warning:' $out/tidy.out ||
        { echo "FAIL tidy $name: $(grep -m1 error $out/tidy.out $out/tidy.err)"; return; }
    sed -n 's|^\([^ ]*\):\([0-9]*\):[0-9]*: [a-z]*: \(.*\) \[\([a-zA-Z0-9.-]*\)[],].*|\1:\2: \4: \3|p' $out/tidy.out |
        sed "s|^$PWD/||; s|^$out/plain.c|$source|" > $out/found
    judge tidy "$name"
}
with_cppcheck()
{
    begin cppcheck "$1" $2 || return
    shift 2
    cppcheck -q --std=c99 --language=c --enable=warning,portability --max-configs=1 -U_WIN32 -U__cplusplus $folders \
        -I"$(dirname $source)" --template='{file}:{line}: {id}: {message}' --suppress=toomanyconfigs "$@" $out/plain.c 2>&1 |
        sed "s|^$out/plain.c|$source|" > $out/found
    judge cppcheck "$name"
}

# Each tool must find a planted fault: a tool that finds nothing would pass everything.
cat > $out/planted.c <<'END'
#include <stdlib.h>
int planted(int n);
int planted(int n)
{
    int *p = (int *)malloc(sizeof *p), *q = NULL;
    if (!p) return 0;
    *p = n;
    free(p);
    if (n) *p = 2;
    return n > 1 ? *q : 0;
}
END
planted()                        # TOOL
{
    wanted "$1 planted" || return
    "with_$1" planted $out/planted.c > $out/planted.out
    grep -q "^FAIL $1 planted: [1-9]" $out/planted.out && echo "ok $1 finds what was planted" ||
        echo "FAIL $1 finds nothing: $(cat $out/planted.out)"
}
own="$(grep -L '<mpi.h>\|"shards.h"' ../examples/*/*.c ../examples/reluize/*/*.c | grep -v /web/)
    tools/faults.c tools/stopped_job.c tools/small_stack.c tools/web_libc.c"
scalar='-DLGELU_NO_SIMD -DLGELU_TRAINER'
if command -v gcc > /dev/null && echo 'int main(void) { return 0; }' | gcc -fanalyzer -x c - -o $out/main 2> /dev/null; then
    planted gcc
    with_gcc header tools/lgelu.c -DLGELU_NO_SIMD
    with_gcc 'all instruction sets' tools/lgelu.c
    for source in $own fuzz/*.c; do with_gcc $(echo $source | sed 's|^\.\./||') $source; done
else echo "skip gcc -fanalyzer: not here"; fi
if [ "$tidy" ]; then
    planted tidy
    with_tidy header ../lgelu.h $scalar -DLGELU_IMPLEMENTATION
    for source in $own; do with_tidy $(echo $source | sed 's|^\.\./||') $source; done
else echo "skip clang-tidy: not installed"; fi
if command -v cppcheck > /dev/null; then
    planted cppcheck
    with_cppcheck header ../lgelu.h $scalar -DLGELU_IMPLEMENTATION -D__GNUC__=12 -D__x86_64__
    for source in $own; do with_cppcheck $(echo $source | sed 's|^\.\./||') $source; done
else echo "skip cppcheck: not installed"; fi
[ "$only" ] || grep -v '^#' $table | grep -v "${tab}everywhere${tab}" | while read -r row; do
    case "$row" in tidy*) [ "$tidy" ] || continue ;; cppcheck*) command -v cppcheck > /dev/null || continue ;; esac
    grep -qxF "$row" $out/used || echo "FAIL analyse: nothing needs the row: $row"
done
