#!/bin/sh
# SPDX-License-Identifier: MIT-0
# compile.sh: measures the time to compile the implementation, the kernels alone and with the trainer, as multiples of the time for
# stb_image (Debian: libstb-dev) in the same run; that from a first program of ten lines to its result (compile, link, run); and the size
# of code and tables. It reports processor seconds, the minimum of ROUNDS compilations; one that takes more than LIMIT seconds is ended.
cd "$(dirname "$0")" && mkdir -p build/compile || exit 1
dir=build/compile
: "${ROUNDS:=3}" "${LIMIT:=300}"
parts='kernels trainer first'
for path in stb/stb_image.h stb_image.h; do
    printf '#define STB_IMAGE_IMPLEMENTATION\n#include <%s>\n' $path > $dir/stb.c
    if ${CC:-cc} -fsyntax-only -w $dir/stb.c 2> /dev/null; then parts="stb $parts"; break; fi
done
printf '#define LGELU_IMPLEMENTATION\n#include "lgelu.h"\n' > $dir/kernels.c
{ echo '#define LGELU_TRAINER'; cat $dir/kernels.c; } > $dir/trainer.c
sed -n '/^## Ten lines/,/^}/p' ../README.md | sed '1,/^```c/d' > $dir/first.c

# make_part PART COMPILER FLAGS...: compiles the part; the first program is linked and run as well.
make_part()
{
    part=$1
    shift
    set -- timeout "$LIMIT" "$@" -w -I.. $dir/$part.c
    if [ $part = first ]; then "$@" -o $dir/first -lm && $dir/first > $dir/first.out; else "$@" -c -o $dir/$part.o; fi
}

# seconds PART COMPILER FLAGS...: prints the seconds that make_part takes, `limit` if they are too many, or `failed`.
seconds()
{
    rm -f $dir/$1.o
    (                                                                           # a shell of its own, whose `times` is of this alone
        make_part "$@" 2> $dir/$1.err
        status=$?
        times > $dir/times
        case $status in
        0)   awk 'FNR == 2 { split($1 "m" $2, t, /[ms]+/); printf "%.2f\n", t[1] * 60 + t[2] + t[3] * 60 + t[4] }' $dir/times ;;
        124) echo limit ;;
        *)   echo failed ;;
        esac
    )
}
# Prints the size of code and tables in KB, without debug information.
kilobytes() { if [ -e $dir/$1.o ]; then size -A $dir/$1.o; fi | awk '$1 ~ /^\.(text|rodata|data|bss|eh_frame)/ { n += $2 } END { printf n ? "%.0f" : "-", n / 1000 }'; }

printf '%-38s %10s %10s %10s %10s %20s\n' '' stb_image kernels trainer 'first run' 'KB: kernels, trainer'
for compiler in gcc clang; do
    if ! command -v $compiler > /dev/null; then echo "$compiler left out: not here"; continue; fi
    for flags in -O0 -O2 '-O1 -fsanitize=address,undefined'; do
        line="flags=$compiler $flags"
        for part in $parts; do
            best=
            for round in $(seq "$ROUNDS"); do
                t=$(seconds $part $compiler -std=c99 $flags)
                case $t in limit|failed) best=$t; break ;; esac
                best=$(printf '%s\n%s\n' "$best" "$t" | sed '/^$/d' | sort -n | head -1)
                [ "${best%.*}" -ge 20 ] && break                                # long enough to be exact
            done
            line="$line|$part=$best|KB $part=$(kilobytes $part)"
        done
        echo "$line"
    done
done | awk -v limit="$LIMIT" '
function time(name, t) {
    t = at[name]
    return t == "limit" ? "> " limit " s" : t == "failed" || t == "" ? "-" : name != "stb" && at["stb"] + 0 > 0 ? sprintf("%.2f x", t / at["stb"]) : sprintf("%.2f s", t)
}
!/^flags=/ { print; next }
{
    split("", at)
    n = split($0, field, "|")
    for (i = 1; i <= n; i++) { e = index(field[i], "="); at[substr(field[i], 1, e - 1)] = substr(field[i], e + 1) }
    printf "%-38s %10s %10s %10s %10s %12s %7s\n", substr(field[1], 7), time("stb"), time("kernels"), time("trainer"), time("first"), at["KB kernels"], at["KB trainer"]
}'
