# SPDX-License-Identifier: MIT-0
# test_deploy_vendor.sh: each pair of files of examples/deploy, copied into a folder with lgelu.h and the files that its header
# says ("Copy onnx_in.[ch] beside lgelu.h, with ..."), and nothing else, compiles there.
CC=${CC:-cc}
. tools/verdict.sh
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
deploy=$PWD/../examples/deploy
for header in "$deploy"/*.h; do
    name=$(basename "$header" .h)
    [ $name = deploy ] && continue
    mkdir "$out/$name"
    cp ../lgelu.h "$out/$name"
    files=$(tr -s '\n ' ' ' < "$header" | sed -n 's/.*Copy \([^*]*\)\. \*\/.*/\1/p; s/.*Copy \([^*]* deploy\.h[^*]*\)\. malloc.*/\1/p')
    for file in $files; do
        case $file in
        lgelu.h*) ;;
        *.\[ch\]*) cp "$deploy/${file%%.*}.c" "$deploy/${file%%.*}.h" "$out/$name" ;;
        *.h*) cp "$deploy/${file%%.h*}.h" "$out/$name" ;;
        esac
    done
    why=$(cd "$out/$name" && $CC -std=c99 $WARNINGS -Werror -fsyntax-only ./*.c 2>&1)
    verdict $? "$name.[ch], vendored as $name.h says" "$(echo "$why" | head -n 1)"
done
exit $bad
