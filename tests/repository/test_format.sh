# SPDX-License-Identifier: MIT-0
# test_format.sh: every C and C++ file has the layout of .clang-format, by clang-format 14, which is Debian's. Other versions break
# some lines elsewhere, so they are not used.
. tools/verdict.sh
format=
for name in clang-format-14 clang-format; do
    if command -v $name > /dev/null && $name --version | grep -q 'version 14\.'; then format=$name; break; fi
done
if [ -z "$format" ]; then
    echo "skip format: no clang-format 14 here"
    exit 0
fi

# The files of the repository, or of a copy of it that has no history.
cd .. || exit 1
if git rev-parse --is-inside-work-tree > /dev/null 2>&1; then
    files=$(git ls-files '*.c' '*.h' '*.cc' '*.cpp')
else
    files=$(find . -name build -prune -o \( -name '*.c' -o -name '*.h' -o -name '*.cc' -o -name '*.cpp' \) -print)
fi
# elsewhere FILE...: the files of another layout, each with its first line that differs
elsewhere() { $format --dry-run -Werror "$@" 2>&1 | sed -n 's/^\([^ :]*:[0-9]*\):.*error: .*/\1/p' | sort -t : -u -k 1,1; }
others=$(elsewhere $(for file in $files; do [ ! -f "$file" ] || [ "${file#./}" = lgelu.h ] || echo "$file"; done))
verdict $([ -z "$others" ]; echo $?) "$(echo "$files" | wc -l | tr -d ' ') files have the layout of .clang-format" "$(echo $others)"

# clang-format reads a file once for each way through its #if, so that the whole header would take 40 s. It is cut at blank lines between
# functions, which a part doesn't contain; a part has some thousand lines.
parts=tests/build/format
rm -rf $parts
mkdir -p $parts
awk -v folder=$parts 'BEGIN { part = 10 }
    /clang-format off/ { off = 1 }
    /clang-format on/ { off = 0 }
    lines > 1000 && !off && last == "}" && $0 == "" { part++; lines = 0; next }
    { print > (folder "/" part ".h"); lines++; last = $0 }' lgelu.h
cut=$(($(ls $parts/*.h | wc -l) - 1))
others=$(elsewhere $parts/*.h)
verdict $([ -z "$others" ] && [ $(($(cat $parts/*.h | wc -l) + cut)) = $(($(wc -l < lgelu.h))) ]; echo $?) \
    "lgelu.h, in $((cut + 1)) parts, has the layout of .clang-format" "$(echo $others)"

# The check itself: a line that is too long is found.
mkdir -p tests/build
printf 'static int f( int a,int b ){return a+b;}\n' > tests/build/format_control.c
verdict $([ -n "$(elsewhere tests/build/format_control.c)" ]; echo $?) "control: another layout is found"
