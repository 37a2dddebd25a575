# SPDX-License-Identifier: MIT-0
# test_deploy_vendor.sh: each pair of files of examples/deploy, copied into a folder with lgelu.h and the files that its header
# names ("Copy onnx_in.[ch] beside lgelu.h, with ..."), compiles there, and defines only names that begin with its prefix. All
# pairs but one compile as one file, so that none of their names clash.
CC=${CC:-cc}
. tools/verdict.sh
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
deploy=$PWD/../examples/deploy
for header in "$deploy"/*.h; do
    name=$(basename "$header" .h)
    case $name in deploy|decimal) continue ;; esac
    # what a pair's own files share, and the program reluize
    if [ $name = reluize ] || { grep -q 'Private to' "$header" && ! grep -q ' Copy ' "$header"; }; then continue; fi
    mkdir "$out/$name"
    cp ../lgelu.h "$out/$name"
    files=$(tr -s '\n ' ' ' < "$header" | sed -n 's/.*Copy \([^*]*\)\. \*\/.*/\1/p; s/.*Copy \([^*]* deploy\.h[^*]*\)\. malloc.*/\1/p')
    for file in $files; do
        case $file in
        lgelu.h*) ;;
        *.\[ch\]*) cp "$deploy/${file%%.*}.c" "$deploy/${file%%.*}.h" "$out/$name" ;;
        *.h*) cp "$deploy/${file%%.h*}.h" "$out/$name" ;;
        *.c*) cp "$deploy/${file%%.c*}.c" "$out/$name" ;;
        esac
    done
    # a header without a source file is included by an empty one
    [ -f "$deploy/$name.c" ] || echo "#include \"$name.h\"" > "$out/$name/$name.c"
    why=$(cd "$out/$name" && $CC -std=c99 $WARNINGS -Werror -fsyntax-only ./*.c 2>&1)
    verdict $? "$name.[ch], vendored as $name.h says" "$(echo "$why" | head -n 1)"
done

mkdir "$out/decimal" && cp "$deploy/decimal.h" "$out/decimal"
echo '#include "decimal.h"' > "$out/decimal/decimal.c"
why=$(cd "$out/decimal" && $CC -std=c99 $WARNINGS -Werror -fsyntax-only decimal.c 2>&1)
verdict $? "decimal.h compiles alone" "$(echo "$why" | head -n 1)"

# The prefixes of a pair: its name, and for the two halves of ONNX and for torch_file their formats.
prefix_of() { case $1 in onnx_in|onnx_out) echo 'onnx_|smooth_' ;; onnx_*) echo onnx_ ;; torch_file) echo torch_ ;; least_squares) echo least_ ;; int8*) echo int8_ ;; c_file_int8) echo 'c_file_|c8_' ;; *) echo ${1}_ ;; esac; }
for source in "$deploy"/*.c; do
    name=$(basename "$source" .c)
    # programs
    case $name in reluize*|onnx_run_main) continue ;; esac
    # a name with a point is a static variable inside a function; one with two underscores is the compiler's
    foreign=$($CC -std=c99 -O0 -c "$source" -o "$out/$name.o" 2>&1 && nm "$out/$name.o" |
        awk -v prefix="$(prefix_of $name)" '$2 ~ /^[A-TV-Za-tv-z]$/ && $3 !~ "^(" prefix "|" toupper(prefix) "|deploy_|decimal_|lgelu_|__)" && $3 !~ /[.]/ { print $3 }')
    [ -f "$out/$name.o" ] && [ -z "$foreign" ]
    verdict $? "$name: every name begins with $(prefix_of $name)" "$(echo $foreign | head -c 200)"
done
# Not among them: the evaluator of ONNX files and what is built on it, whose files have static functions of the same names.
# solver.c first, which defines the level of POSIX that it needs
for source in "$deploy"/solver.c "$deploy"/[!s]*.c; do
    case $(basename "$source") in reluize*|onnx_[!io]*) ;; *) echo "#include \"$source\"" ;; esac
done > "$out/all.c"
why=$($CC -std=c99 $WARNINGS -Werror -fsyntax-only "$out/all.c" 2>&1)
verdict $? "all pairs as one file" "$(echo "$why" | head -n 1)"
exit $bad
