# SPDX-License-Identifier: MIT-0
# bare.sh [quick]: prints the names of the tests in shell that README's command runs and that name a program which it does not install.
# They are what .ci/run tests in a bare Debian. With `quick`, all tests in shell that name one and take seconds, which test_bare runs.
optional='python|node|npm|clang|g\+\+|tcc|mpicc|qemu|arm-none|chromium|cmake|meson|pkg-config|xmllint|localedef|git |cppcheck|valgrind|command -v'
slow='test_contraction|test_examples|test_header|test_interface|test_outputs|test_races|test_study.*|test_vendoring'
short=$(MAKEFLAGS= make -s names)
for script in $(grep -lE "$optional" */test_*.sh); do
    name=$(basename $script .sh)
    [ $name != test_bare ] || continue
    if [ "$1" = quick ]; then ! echo $name | grep -qxE "$slow" || continue
    else echo "$short" | grep -qx $name || continue; fi
    echo $name
done
