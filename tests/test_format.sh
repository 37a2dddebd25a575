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
others=$(for file in $files; do
    [ ! -f "$file" ] || $format --dry-run -Werror "$file" > /dev/null 2>&1 || echo "$file"
done)
verdict $([ -z "$others" ]; echo $?) "$(echo "$files" | wc -l | tr -d ' ') files have the layout of .clang-format" "$(echo $others)"

# The check itself: a line that is too long is found.
mkdir -p tests/build
printf 'static int f( int a,int b ){return a+b;}\n' > tests/build/format_control.c
$format --dry-run -Werror tests/build/format_control.c > /dev/null 2>&1
verdict $([ $? != 0 ]; echo $?) "control: another layout is found"
