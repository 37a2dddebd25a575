# SPDX-License-Identifier: MIT-0
# test_deploy_vendor.sh: each pair of files of examples, copied into a folder with lgelu.h and the files that its header
# names ("Copy onnx_out.[ch] beside lgelu.h, with ..."), compiles there, and defines only names that begin with its prefix. All
# pairs but one compile as one file, so that none of their names clash.
CC=${CC:-cc}
. tools/verdict.sh
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
# what is copied finds nothing elsewhere
unset CPATH
examples=$PWD/../examples
folders="$examples/reluize/onnx $examples/reluize/ops $examples/reluize/passes $examples/network $examples/verify $examples/int8"
# copied FILE...: copies files of these names, wherever in examples they are
copied() { for file in "$@"; do find "$examples" -name "$file" -not -path '*/build/*' -not -path '*/app/*' -exec cp {} "$out/$name" \;; done; }
# named HEADER: prints what its comment says to copy, and what is said in the headers whose files belong to it
named()
{
    found=$(find "$examples" -name "$1" -not -path '*/build/*' -exec cat {} + | tr -s '\n ' ' ' |
        sed -n 's/.*Copy \([^/]*\)\. \*\/.*/\1/p; s/.*Copy \([^/]* deploy\.h[^/]*\)\. malloc.*/\1/p')
    echo "$found"
    for other in $(echo "$found" | grep -oE '(files of|what) [a-z_0-9]+\.h' | sed 's/.* //'); do named "$other"; done
}
for header in $(find $folders -maxdepth 1 -name '*.h'); do
    name=$(basename "$header" .h)
    # what a pair's own files share
    if grep -q 'Private to' "$header" && ! grep -q ' Copy ' "$header"; then continue; fi
    mkdir "$out/$name"
    cp ../lgelu.h "$out/$name"
    set -f
    for file in $(named "$name.h"); do
        case $file in
        lgelu.h*) ;;
        *.\[ch\]*) copied "${file%%.*}.c" "${file%%.*}.h" ;;
        *.h*) copied "${file%%.h*}.h" ;;
        *.c*) copied "${file%%.c*}.c" ;;
        esac
    done
    set +f
    # a header without a source file is included by an empty one
    [ -f "${header%.h}.c" ] || echo "#include \"$name.h\"" > "$out/$name/$name.c"
    why=$(cd "$out/$name" && $CC -std=c99 $WARNINGS -Werror -fsyntax-only ./*.c 2>&1)
    verdict $? "$name.[ch], vendored as $name.h says" "$(echo "$why" | head -n 1)"
done

mkdir "$out/decimal" && cp "../examples/common/decimal.h" "$out/decimal"
echo '#include "decimal.h"' > "$out/decimal/decimal.c"
why=$(cd "$out/decimal" && $CC -std=c99 $WARNINGS -Werror -fsyntax-only decimal.c 2>&1)
verdict $? "decimal.h compiles alone" "$(echo "$why" | head -n 1)"

# The prefixes of a pair: its name, and for the two halves of ONNX and for torch_file their formats. Functions that a file of the
# evaluator or of a pass keeps to itself begin with onnx_ or with the file's subject.
prefix_of() { case $1 in onnx_*) echo onnx_ ;; torch_file) echo torch_ ;; least_squares) echo least_ ;; int8*) echo int8_ ;; *) echo ${1}_ ;; esac; }
subject_of() { case $1 in onnx_back*) echo '|back_' ;; onnx_run_whole) echo '|whole_' ;; onnx_int8*) echo '|int8_|walk_|equal_' ;; onnx_distil|onnx_augment) echo "|${1#onnx_}_" ;; onnx_opset) echo '|opset_' ;; onnx_c*) echo '|c_' ;; esac; }
include=$(include_flags "$examples")
for source in $(find $folders -maxdepth 1 -name '*.c' | sort); do
    name=$(basename "$source" .c)
    # a name with a point is a static variable inside a function; one with two underscores is the compiler's
    foreign=$($CC -std=c99 -O0 $include -c "$source" -o "$out/$name.o" 2>&1 && nm "$out/$name.o" |
        awk -v prefix="$(prefix_of $name)" -v subject="$(subject_of $name)" '$2 ~ /^[A-TV-Za-tv-z]$/ && $3 !~ /[.]/ {
            own = prefix ($2 ~ /[a-z]/ ? subject : "")
            if ($3 !~ "^(" own "|" toupper(own) "|deploy_|decimal_|lgelu_|__)") print $3 }')
    [ -f "$out/$name.o" ] && [ -z "$foreign" ]
    verdict $? "$name: every name begins with $(prefix_of $name)" "$(echo $foreign | head -c 200)"
done
# Not among them: the evaluator of ONNX files and what is built on it, whose files have static functions of the same names.
# solver.c first, which defines the level of POSIX that it needs
for source in "$examples/verify/solver.c" $(find $folders -maxdepth 1 -name '*.c' -not -name solver.c | sort); do
    case $(basename "$source") in onnx_out.c) echo "#include \"$source\"" ;; onnx_*) ;; *) echo "#include \"$source\"" ;; esac
done > "$out/all.c"
why=$($CC -std=c99 $WARNINGS -Werror $include -fsyntax-only "$out/all.c" 2>&1)
verdict $? "all pairs as one file" "$(echo "$why" | head -n 1)"
exit $bad
