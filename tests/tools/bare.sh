# SPDX-License-Identifier: MIT-0
# bare.sh [quick]: prints the names of the tests in shell that name a program which README's command does not install. They are what
# .ci/run tests in a bare Debian. With `quick`, those that take seconds, which test_bare runs on each change.
optional='python|node|npm|clang|g\+\+|tcc|mpicc|qemu|arm-none|chromium|cmake|meson|pkg-config|xmllint|localedef|git |cppcheck|valgrind|command -v'
slow='test_contraction|test_examples|test_header|test_interface|test_outputs|test_races|test_study.*|test_vendoring'
for script in $(grep -lE "$optional" test_*.sh); do
    name=${script%.sh}
    [ $name != test_bare ] || continue
    [ "$1" != quick ] || ! echo $name | grep -qxE "$slow" || continue
    echo $name
done
